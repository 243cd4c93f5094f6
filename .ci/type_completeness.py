"""Print the share of public names with known types, and fail if the share is too small.

What other packages leave untyped is not counted against this one.
"""

import json
import subprocess
import sys

LEAST = 0.8

command = ["basedpyright", "--verifytypes", "skdcf", "--ignoreexternal", "--outputjson"]
answer = subprocess.run(command, capture_output=True, text=True, check=False).stdout
share = json.loads(answer)["typeCompleteness"]["completenessScore"]
print(
    f"types of public names that are known: {share:.1%}, at least {LEAST:.0%} is asked"
)
sys.exit(share < LEAST)
