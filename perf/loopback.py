"""A model server for measurements: one process, one event loop, every answer after a fixed latency, and no work to speak of.

`python -m perf.loopback` prints its port and serves until its standard input closes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

ANSWER = "The answer follows from the definition, step by step, without any further assumption. " * 14 + "\nAnswer: 42"


def body() -> bytes:
    """A chat completion of over a kilobyte; `{:012d}` stands for its number."""
    message = {"role": "assistant", "content": ANSWER, "refusal": None}
    usage = {"prompt_tokens": 321, "completion_tokens": 256, "total_tokens": 577}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    whole = {"id": "chatcmpl-@@", "object": "chat.completion", "created": 1760000000, "model": "m-1", "choices": [choice]}
    return json.dumps(whole | {"usage": usage, "system_fingerprint": "fp_1"}).encode()


class Answering(asyncio.Protocol):
    """One connection."""

    latency = 0.05
    answers = 0
    _before, _after = b"", b""

    @classmethod
    def prepare(cls, latency: float) -> None:
        """Make the answer's two halves around its number."""
        text = body().replace(b"@@", b"0" * 12)
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\nx-request-id: req-1\r\n\r\n"
        cls._before, _, cls._after = (head.encode() + text).partition(b"0" * 12)
        cls.latency = latency

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._got = b""

    def data_received(self, data: bytes) -> None:
        self._got += data
        while (end := self._got.find(b"\r\n\r\n")) >= 0:
            head = self._got[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(self._got) < end + 4 + length:
                return
            self._got = self._got[end + 4 + length :]
            asyncio.get_running_loop().call_later(self.latency, self._answer)

    def _answer(self) -> None:
        Answering.answers += 1
        if not self._transport.is_closing():
            self._transport.write(self._before + b"%012d" % Answering.answers + self._after)  # type: ignore[attr-defined]


async def serve(latency: float) -> None:
    Answering.prepare(latency)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.05)
    asyncio.run(serve(parser.parse_args().latency))
