"""Print the share of promised names with known types, and fail if the share is too small.

Functions, methods and attributes of the names in `__all__` of the modules in docs/api.rst count.
What other packages leave untyped is not counted against this one.
"""

import json
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

LEAST = 0.9

promised = set()
api = Path(__file__).parents[1] / "docs/api.rst"
for module in map(import_module, re.findall(r"^   (skdcf\S*)$", api.read_text(), re.M)):
    for value in (getattr(module, name) for name in module.__all__):
        for each in getattr(value, "__mro__", [value]):
            if getattr(each, "__module__", "").startswith("skdcf"):
                promised.add(f"{each.__module__}.{each.__name__}")

command = ["basedpyright", "--verifytypes", "skdcf", "--ignoreexternal", "--outputjson"]
answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
known = [
    symbol["isTypeKnown"]
    for symbol in json.loads(answer)["typeCompleteness"]["symbols"]
    if symbol["category"] in ("function", "method", "variable")
    and any(f"{symbol['name']}.".startswith(f"{n}.") for n in promised)
]
share = sum(known) / len(known)
print(
    f"types of promised names that are known: {share:.1%}, at least {LEAST:.0%} is asked"
)
sys.exit(share < LEAST)
