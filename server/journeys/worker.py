# An outside worker in plain HTTP. It takes one task of the pool print: it claims, extends its lease while it
# works, and ends the task. A worker that was too slow has lost its lease, and claims again. The environment has the
# address of the server as URL and a token as TOKEN.
import json, os, time, urllib.error, urllib.request

def post(path, body):
    request = urllib.request.Request(
        os.environ["URL"] + "/v1/pools/print" + path,
        data=json.dumps(body).encode(),
        headers={"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or "null")

def work():
    claims = []
    while not claims:
        claims = post("/claim", {"n": 1, "lease": "2s"})
        time.sleep(0 if claims else 0.1)
    lease, task = claims[0]["lease"], claims[0]["task"]
    print("claimed", lease["id"], flush=True)
    while True:
        lease = post("/tasks/" + lease["id"] + "/heartbeat", {"lease": lease})
        print("heartbeat", flush=True)
        if "HANG" not in os.environ:
            break
        time.sleep(0.5)
    post("/tasks/" + lease["id"] + "/ack", {"lease": lease, "out": "printed " + task["in"]})
    print("done", flush=True)

while True:
    try:
        work()
        break
    except urllib.error.HTTPError as refused:
        if refused.code != 409:
            raise
