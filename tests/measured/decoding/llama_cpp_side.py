"""Decode with llama.cpp, in an environment of its own: llama_cpp_side.py GGUF ROWS CONTEXT THREADS.

Each line of standard input is a request, {"prompts": [[token, ...], ...], "tokens": N}: all prompts are continued at once, by N
tokens each. The answer is one line, {"seconds": S}. The first line of the output, before any request, is {"versions": {...}}.
"""

import importlib.metadata
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import xllamacpp


def main(path: str, rows: int, context: int, threads: int) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_parallel, params.n_ctx, params.n_gpu_layers = rows, rows * context, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_threads_http = rows + 2  # of the server that is never asked; requests come from this process
    params.verbosity = -1
    server = xllamacpp.Server(params)
    say({"versions": {"xllamacpp": importlib.metadata.version("xllamacpp")}})
    with ThreadPoolExecutor(rows) as pool:
        for line in sys.stdin:
            request = json.loads(line)

            def complete(prompt: list[int], tokens: int = request["tokens"]) -> int:
                answer = server.handle_completions(
                    {
                        "prompt": prompt,
                        "n_predict": tokens,
                        "ignore_eos": True,
                        "cache_prompt": False,
                        "temperature": 1.0,
                        "seed": 1,
                    }
                )
                return int(answer["usage"]["completion_tokens"])

            began = time.perf_counter()
            counts = list(pool.map(complete, request["prompts"]))
            seconds = time.perf_counter() - began
            if counts != [request["tokens"]] * len(counts):
                raise SystemExit(f"llama.cpp wrote {counts} tokens")
            say({"seconds": seconds})


def say(values: dict[str, object]) -> None:
    sys.__stdout__.write(json.dumps(values) + "\n")
    sys.__stdout__.flush()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
