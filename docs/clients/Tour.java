// The tour by the client that openapi-generator has made for Java: upload, train, wait, score, evaluate. `make clients`
// makes the client, compiles both and runs this against a service. It reads churn.csv, next_year.csv and customers.csv.

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.ser.std.StdSerializer;
import java.io.File;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.DatasetsApi;
import org.openapitools.client.api.EvaluationsApi;
import org.openapitools.client.api.JobsApi;
import org.openapitools.client.api.ScoringApi;
import org.openapitools.client.model.*;

public class Tour {
    static final String WAIT = "wait=60";

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    static Dataset upload(DatasetsApi datasets, String file, String name) throws ApiException {
        Dataset found = datasets.uploadDataset(DatasetsApi.APIUploadDatasetRequest.newBuilder().body(new File(file))
            .prefer(WAIT).name(name).label("churned").positive("1").build());
        check(found.getStatus() == Dataset.StatusEnum.READY, "the dataset is ready");
        return found;
    }

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        // This client writes every body by Jackson, a File by its name: let it write what is in the file.
        SimpleModule files = new SimpleModule();
        files.addSerializer(File.class, new StdSerializer<>(File.class) {
            @Override
            public void serialize(File file, JsonGenerator sink, SerializerProvider provider) throws IOException {
                sink.writeRaw(Files.readString(file.toPath()));
            }
        });
        // Of an answer with several forms it takes the form that has all its fields.
        client.setObjectMapper(
            client.getObjectMapper().registerModule(files).enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES));
        client.updateBaseUri(System.getenv("RANKWRIGHT_URL"));
        String key = System.getenv("RANKWRIGHT_API_KEY");
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
        DatasetsApi datasets = new DatasetsApi(client);
        JobsApi jobs = new JobsApi(client);
        Dataset data = upload(datasets, "churn.csv", "churn");
        Dataset later = upload(datasets, "next_year.csv", "next_year");

        RankboostAlgorithm algorithm = new RankboostAlgorithm().name(RankboostAlgorithm.NameEnum.RANKBOOST).nRounds(20);
        JobRequest request = new JobRequest().datasetId(data.getId()).name("churn").baselines(false)
            .algorithm(new JobRequestAlgorithm(algorithm));
        Job job = jobs.submitJob(request, "java-tour", WAIT);
        while (job.getState() == Job.StateEnum.QUEUED || job.getState() == Job.StateEnum.RUNNING) {
            job = jobs.readJob(job.getId(), WAIT);
        }
        check(job.getState() == Job.StateEnum.SUCCEEDED, "the job has succeeded");
        check(jobs.submitJob(request, "java-tour", WAIT).getId().equals(job.getId()), "a replay makes nothing");

        List<String> lines = Files.readAllLines(Path.of("customers.csv"));
        RowsAsLists rows = new RowsAsLists().columns(List.of(lines.get(0).split(",")));
        for (String line : lines.subList(1, lines.size())) {
            List<RowsInnerValue> row = new ArrayList<>();
            for (String value : line.split(",", -1)) {
                row.add(value.isEmpty() ? null : new RowsInnerValue(new BigDecimal(value)));
            }
            rows.addDataItem(row);
        }
        ScoreRows200Response scored = new ScoringApi(client).scoreRows(ScoringApi.APIScoreRowsRequest.newBuilder()
            .ref("churn").scoreRowsRequest(new ScoreRowsRequest(rows)).build());
        check(scored.getScores().getScores().size() == rows.getData().size(), "each row has a score");

        EvaluationRequest asked = new EvaluationRequest().model("churn").datasetId(later.getId());
        Evaluation judged = new EvaluationsApi(client).createEvaluation(asked, null, WAIT);
        check(judged.getStatus() == Evaluation.StatusEnum.READY, "the evaluation is " + judged.getStatus() + ", " + judged.getError());
        try {
            jobs.submitJob(request.datasetId("ds_none"), null, null);
            check(false, "a job without a dataset is refused");
        } catch (ApiException refusal) {
            check(refusal.getCode() == 404, "the refusal says what is not there");
        }
        System.out.println("the tour by the Java client is done");
    }
}
