"""OpenAI's own client against a worker, one scenario a run.

    client.py SCENARIO WORKER_URL [ENGINE_URL]

The test that runs this and the scenario take turns: `tell` says where the
scenario is, and it goes on when the test, which has looked at the gate, says
so. An assertion that fails is a traceback and a status other than 0.
"""

import asyncio
import sys

import openai

MESSAGES = [{"role": "user", "content": "How high is the tide?"}]
# So many that no answer ends by itself while a test runs.
ENDLESS = 50_000


def tell(where):
    """Says where the scenario is, and waits until it may go on."""
    print(where, flush=True)
    assert sys.stdin.readline().strip() == "go on", "the test has given up"


def client(url, kind=openai.OpenAI):
    # Its retries would hide what happened.
    return kind(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=30)


def ask(to, tokens, stream, **more):
    # `ignore_eos` makes the engine generate exactly that many.
    return to.chat.completions.create(
        model="sim",
        messages=MESSAGES,
        max_tokens=tokens,
        stream=stream,
        extra_body={"ignore_eos": True},
        **more,
    )


def plain(answer):
    """What it says, without the one member that depends on when it was asked."""
    return answer.model_dump(exclude={"created"})


def unchanged(worker, engine):
    """Whether the worker is there or not, the client gets the same objects.

    The engine behind the worker and the other one are twins: the n-th request
    of either has the same id and text.
    """
    gated, direct = client(worker), client(engine)
    usage = {"include_usage": True}
    streams = [
        [plain(chunk) for chunk in ask(to, 20, True, stream_options=usage)] for to in (gated, direct)
    ]
    assert streams[0] == streams[1], streams
    deltas = [choice["delta"] for chunk in streams[0] for choice in chunk["choices"]]
    assert sum(bool(delta["content"]) for delta in deltas) == 20, deltas
    assert streams[0][-1]["usage"]["completion_tokens"] == 20, streams[0][-1]

    whole = [plain(ask(to, 7, False)) for to in (gated, direct)]
    assert whole[0] == whole[1], whole
    assert whole[0]["choices"][0]["message"]["content"], whole
    assert whole[0]["usage"]["completion_tokens"] == 7, whole

    texts = [
        plain(to.completions.create(model="sim", prompt="High tide", max_tokens=5))
        for to in (gated, direct)
    ]
    assert texts[0] == texts[1], texts
    vectors = [
        plain(to.embeddings.create(model="sim", input="tide", encoding_format="float"))
        for to in (gated, direct)
    ]
    assert vectors[0] == vectors[1], vectors
    models = [[plain(model)["id"] for model in to.models.list()] for to in (gated, direct)]
    assert models[0] == models[1] == ["sim"], models

    errors = []
    for to in (gated, direct):
        try:
            to.chat.completions.create(model="another", messages=MESSAGES)
        except openai.NotFoundError as error:
            errors.append((error.status_code, error.code, error.message))
    assert len(errors) == 2 and errors[0] == errors[1], errors


def check_refusal(error):
    assert isinstance(error, openai.InternalServerError), repr(error)
    assert isinstance(error, openai.APIStatusError), repr(error)
    assert error.status_code == 529, error.status_code
    assert error.body["message"] == "Service temporarily overloaded", error.body
    assert error.body["type"] == "Overloaded" and error.body["code"] == 529, error.body
    # What a program logs of it says why.
    assert "529" in str(error) and "Service temporarily overloaded" in str(error), str(error)
    headers = error.response.headers
    assert headers["x-admission-scope"] == "worker", headers
    assert headers["content-type"] == "application/json", headers
    assert 1 <= int(headers["retry-after"]) <= 60, headers


def refused(worker):
    """The worker has one place and no queue. Refusals are errors of the
    client's own, streaming or not, at once and not in the stream."""
    to = client(worker)
    stream = ask(to, ENDLESS, True)
    next(iter(stream))
    tell("streaming")
    for streams in (True, False):
        try:
            ask(to, 5, streams)
        except openai.APIStatusError as error:
            check_refusal(error)
        else:
            raise AssertionError(f"not refused, stream={streams}")

    async def asynchronously():
        async with client(worker, openai.AsyncOpenAI) as to:
            for streams in (True, False):
                try:
                    await ask(to, 5, streams)
                except openai.APIStatusError as error:
                    check_refusal(error)
                else:
                    raise AssertionError(f"not refused, stream={streams}")

    asyncio.run(asynchronously())
    stream.close()
    tell("closed")
    assert ask(to, 5, False).usage.completion_tokens == 5


def retried(worker):
    """With the client's own retries, one who was refused gets in later: its
    Retry-After is within what the client follows."""
    to = client(worker)
    stream = ask(to, ENDLESS, True)
    next(iter(stream))
    patient = to.with_options(max_retries=5)

    async def both():
        answer = asyncio.create_task(asyncio.to_thread(ask, patient, 5, False))
        await asyncio.to_thread(tell, "refused")
        stream.close()
        return await answer

    assert asyncio.run(both()).usage.completion_tokens == 5


def closed(worker):
    """A stream that its reader closes, by itself or at the end of a `with`."""
    to = client(worker)
    stream = ask(to, ENDLESS, True)
    for _ in range(3):
        next(iter(stream))
    tell("streaming")
    stream.close()
    tell("closed")
    with ask(to, ENDLESS, True) as stream:
        for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        tell("streaming")
    tell("closed")


def cancelled(worker):
    """Tasks cancelled while their requests are queued, streaming and not."""

    async def run():
        async with client(worker, openai.AsyncOpenAI) as to:
            stream = await ask(to, ENDLESS, True)
            await anext(aiter(stream))
            queued = [asyncio.create_task(ask(to, 5, streams)) for streams in (True, False)]
            await asyncio.to_thread(tell, "queued")
            for task in queued:
                task.cancel()
            ends = await asyncio.gather(*queued, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends
            await asyncio.to_thread(tell, "cancelled")
            # The places are free again, and whoever takes one is served.
            last = asyncio.create_task(ask(to, 5, False))
            await asyncio.to_thread(tell, "queued")
            await stream.close()
            assert (await last).usage.completion_tokens == 5

    asyncio.run(run())


def told(worker):
    """Queued and told of it: the client has its streams at once, passes over the
    news, and raises an error of its own for what goes wrong then."""
    to = client(worker)
    news = {"extra_headers": {"x-admission-progress": "1"}}
    first = ask(to, ENDLESS, True)
    next(iter(first))
    stream = ask(to, 5, True, **news)
    wrong = to.chat.completions.create(model="another", messages=MESSAGES, stream=True, **news)
    tell("queued")
    first.close()
    texts = [chunk.choices[0].delta.content for chunk in stream]
    assert sum(bool(text) for text in texts) == 5, texts
    try:
        raise AssertionError(f"no error: {list(wrong)}")
    except openai.APIError as error:
        assert error.message == "The engine answered 404 Not Found", error.message
        assert error.body["code"] == 404, error.body


SCENARIOS = {
    each.__name__: each for each in (unchanged, refused, retried, closed, cancelled, told)
}

if __name__ == "__main__":
    SCENARIOS[sys.argv[1]](*sys.argv[2:])
