"""Entry point of the frozen verifier and of the template process.

They have their own executable because they need a fixed hash seed and few imports.
"""

import sys

if sys.argv[1:] == ["template"]:
    from waggle.tasks.sandbox.template_process import main
else:
    from waggle.tasks.sandbox.verifier_process import main

if __name__ == "__main__":
    main()
