"""Prints the fenced code of one language in a Markdown file, as one program.

Usage: code_of.py FILE LANGUAGE
"""

import pathlib
import re
import sys


def main():
    path, language = sys.argv[1:]
    blocks = re.findall(rf"^```{re.escape(language)}\n(.*?)^```$", pathlib.Path(path).read_text(), re.M | re.S)
    print("\n".join(blocks), end="")
    return 0 if blocks else f"code_of: {path} has no {language}"


if __name__ == "__main__":
    sys.exit(main())
