"""The fault server as a process of its own: what it answers, what it counts, and that its count survives it."""

from __future__ import annotations

import asyncio
import time

import pytest
from wire.client import CONTEXT, spec_for
from wire.dialects import DIALECTS
from wire.ledger import body_hash, read
from wire.process import wire_process
from wire.scripts import SUM, sums

from evalnoise.providers.base import Failure
from evalnoise.providers.make import make_provider
from schemas.records import Response


def ask(dialect, url, prompts, *, concurrency=32, **options):
    async def work():
        made = make_provider(spec_for(dialect, url, **options), model="m", max_tokens=50, retry="none", concurrency=concurrency)
        slots = asyncio.Semaphore(concurrency)

        async def one(prompt):
            async with slots:
                return await made.send(made.request(prompt, CONTEXT), CONTEXT)

        try:
            return await asyncio.gather(*map(one, prompts))
        finally:
            await made.close()

    return asyncio.run(work())


def test_every_protocol_and_the_servers_own_count(tmp_path):
    prompts = [task["prompt"] for task in sums(40)]
    ledger, results = tmp_path / "ledger", []
    with wire_process(ledger, "--seed", "3", "--share", "0.3", "--rate", "0.6") as url:
        for dialect in DIALECTS:
            for stream in (False, True):
                results += ask(dialect, url, prompts, stream=stream)
    counts = read(ledger)
    answers = [result for result in results if isinstance(result, Response)]
    failures = [result for result in results if isinstance(result, Failure)]
    assert counts.asked.total() == len(results) == 240
    assert counts.answered.total() == len(answers) == 240 - counts.faults.total()
    assert len(failures) == counts.faults.total() > 40
    assert {response.response_id for response in answers} == counts.answers.keys()
    for response in answers:
        told = counts.answers[response.response_id]
        assert (response.input_tokens, response.output_tokens) == (told["input"], told["output"])
    mine = sum((r.input_tokens * 3 + r.output_tokens * 15) / 1e6 for r in answers)
    assert counts.cost == pytest.approx(mine, rel=1e-12)
    right = {task["prompt"]: f"Answer: {task['reference']}" for task in sums(40)}
    for prompt, result in zip(prompts * 6, results, strict=True):
        if isinstance(result, Response):
            assert counts.answers[result.response_id]["right"] is result.text.endswith(f"\n{right[prompt]}")


def test_a_count_survives_its_server_and_the_next_one_goes_on(tmp_path, dialect):
    ledger, prompts = tmp_path / "ledger", ["What is 1 + 2?"] * 20
    texts = []
    for _ in range(2):
        with wire_process(ledger, "--share", "0") as url:
            texts.append([response.text for response in ask(dialect, url, prompts, concurrency=1)])
    counts = read(ledger)
    assert list(counts.asked.values()) == [40]
    assert len(counts.answers) == 40
    assert SUM.search(prompts[0])
    assert len({*texts[0], *texts[1]}) > 1  # replicates differ, by how often the body has come


def test_what_it_does_depends_on_the_body_and_not_on_the_order(tmp_path):
    prompts = [task["prompt"] for task in sums(60)]
    found = []
    for number, asked in enumerate((prompts, prompts[::-1])):
        with wire_process(tmp_path / str(number), "--seed", "5", "--share", "0.4") as url:
            results = ask(DIALECTS[0], url, asked)
        outcome = {p: r.text if isinstance(r, Response) else r.kind for p, r in zip(asked, results, strict=True)}
        found.append(outcome)
    assert found[0] == found[1]


def test_a_request_whose_client_is_gone_is_counted_as_asked(tmp_path):
    async def leave(url):
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
        body = b'{"messages": [{"role": "user", "content": "What is 1 + 1?"}]}'
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()
        return body_hash(body)

    with wire_process(tmp_path / "ledger", "--share", "0", "--latency", "0.2") as url:
        key = asyncio.run(leave(url))
        time.sleep(0.5)
    assert dict(read(tmp_path / "ledger").asked) == {key: 1}


def test_it_is_fast_enough_for_a_study_of_thousands(tmp_path):
    """The client takes most of the time; the server must not be what waits."""

    async def flood(url, calls):
        body = b'{"messages": [{"role": "user", "content": "What is 1 + 1?"}]}'
        request = b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

        async def client():
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))
            for _ in range(calls // 16):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r")[0]))
            writer.close()

        began = time.perf_counter()
        await asyncio.gather(*(client() for _ in range(16)))
        return calls / (time.perf_counter() - began)

    with wire_process(tmp_path / "ledger", "--share", "0") as url:
        assert asyncio.run(flood(url, 1600)) > 300
