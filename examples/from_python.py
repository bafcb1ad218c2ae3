"""The program of docs/clients.md: from a file to scores. A test runs it, and mypy checks it."""

import pandas as pd
import rankwright

# Uses RANKWRIGHT_URL and RANKWRIGHT_API_KEY, or else what `rankwright serve` left in .rankwright/
client = rankwright.Client()
# A path, an open file, a DataFrame, an Arrow table, or rows as dicts
data = client.upload("churn.csv", label="churned")
job = client.train(data, "rankboost", n_rounds=200, name="churn")
for event in job.follow():  # reconnects if the connection breaks
    print(event.type, event.data)
model = job.wait()  # Ctrl-C leaves the job running
print(model.auc.value, model.auc.low, model.auc.high)
print(model.operating_point(fpr=0.01).threshold)
frame = pd.read_csv("customers.csv")
print(model.score(frame))  # score, fpr, tpr and probability, in the caller's kind of table
client.models.set_alias("churn", "champion", model)
print(client.models["churn@champion"].score_row(age=41, plan="gold").score)
