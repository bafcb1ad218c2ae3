// The tour by the client that openapi-generator has made for Go: upload, train, wait, score, evaluate. `make clients`
// makes the client, builds both and runs this against a service. It reads churn.csv, next_year.csv and customers.csv.
package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"log"
	"net/http"
	"os"
	"slices"
	"strconv"

	rankwright "github.com/GIT_USER_ID/GIT_REPO_ID"
)

const wait = "wait=60"

func expect(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func check(holds bool, what string) {
	if !holds {
		log.Fatal(what)
	}
}

// asCSV sends every body as CSV. The generated client sets JSON for every route that also takes JSON.
type asCSV struct{}

func (asCSV) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Content-Type", "text/csv")
	return http.DefaultTransport.RoundTrip(request)
}

func connect(transport http.RoundTripper) *rankwright.APIClient {
	configuration := rankwright.NewConfiguration()
	configuration.Servers = rankwright.ServerConfigurations{{URL: os.Getenv("RANKWRIGHT_URL")}}
	configuration.HTTPClient = &http.Client{Transport: transport}
	return rankwright.NewAPIClient(configuration)
}

func main() {
	client, tables := connect(http.DefaultTransport), connect(asCSV{})
	ctx := context.WithValue(context.Background(), rankwright.ContextAccessToken, os.Getenv("RANKWRIGHT_API_KEY"))

	upload := func(path, name string) *rankwright.Dataset {
		file, err := os.Open(path)
		expect(err)
		defer file.Close()
		found, _, err := tables.DatasetsAPI.UploadDataset(ctx).Body(file).Name(name).Label("churned").Positive("1").
			Prefer(wait).Execute()
		expect(err)
		check(found.Status == "ready", "the dataset is ready")
		return found
	}
	data, later := upload("churn.csv", "churn"), upload("next_year.csv", "next_year")

	algorithm := rankwright.NewRankboostAlgorithm("rankboost")
	algorithm.SetNRounds(20)
	request := rankwright.NewJobRequest(data.Id, rankwright.RankboostAlgorithmAsJobRequestAlgorithm(algorithm))
	request.SetName("churn")
	request.SetBaselines(false)
	job, _, err := client.JobsAPI.SubmitJob(ctx).JobRequest(*request).Prefer(wait).Execute()
	expect(err)
	for job.State == "queued" || job.State == "running" {
		job, _, err = client.JobsAPI.ReadJob(ctx, job.Id).Prefer(wait).Execute()
		expect(err)
	}
	check(job.State == "succeeded", "the job has succeeded")

	file, err := os.Open("customers.csv")
	expect(err)
	lines, err := csv.NewReader(file).ReadAll()
	expect(err)
	rows := rankwright.NewRowsAsLists(lines[0], nil)
	for _, line := range lines[1:] {
		if slices.Contains(line, "") {
			continue // a missing value is null, which this client cannot write
		}
		row := make([]rankwright.RowsInnerValue, len(line))
		for i, text := range line {
			value, err := strconv.ParseFloat(text, 32)
			expect(err)
			number := float32(value)
			row[i].Float32 = &number
		}
		rows.Data = append(rows.Data, row)
	}
	asked := rankwright.ScoreRowsRequest{RowsAsLists: rows}
	scored, _, err := client.ScoringAPI.ScoreRows(ctx, "churn").ScoreRowsRequest(asked).Execute()
	expect(err)
	check(len(scored.Scores.Scores) == len(rows.Data), "each row has a score")

	judged, _, err := client.EvaluationsAPI.CreateEvaluation(ctx).
		EvaluationRequest(*rankwright.NewEvaluationRequest("churn", later.Id)).Prefer(wait).Execute()
	expect(err)
	check(judged.Status == "ready", "the evaluation is ready")
	request.DatasetId = "ds_none"
	_, answer, err := client.JobsAPI.SubmitJob(ctx).JobRequest(*request).Execute()
	check(err != nil && answer.StatusCode == 404, "a job without a dataset is refused")
	fmt.Println("the tour by the Go client is done")
}
