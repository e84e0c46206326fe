"""`formwork extract --jsonl` as a coprocess: a worker of a data engine starts it once, and gives it batches of texts."""

import json
import subprocess
import threading


class Formwork:
    """Extracts one value from each text, with the options of `formwork extract`.

    The rows of a batch are processed concurrently, and come back in their order.
    """

    def __init__(self, *options, program="formwork"):
        command = [program, "extract", "--jsonl", *options]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def __call__(self, texts):
        """Returns a dictionary for each text: `ok` with `value`, or `error`, each with `calls` and `cost`."""
        texts = list(texts)
        # Written beside the reading: the pipes hold less than a batch.
        writer = threading.Thread(target=self._write, args=(texts,))
        writer.start()
        results = []
        for _ in texts:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"formwork ended with exit code {self.process.wait()}: its message is on standard error")
            results.append(json.loads(line))
        writer.join()
        return results

    def _write(self, texts):
        try:
            for number, text in enumerate(texts):
                self.process.stdin.write(json.dumps({"id": number, "input": text}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The reader raises the error.
