"""Where the frozen verifier begins, and what renders chat templates: an executable of their own, because the hash seed is
fixed and the imports are few."""

import sys

if sys.argv[1:] == ["template"]:
    from waggle.tasks.sandbox.template_process import main
else:
    from waggle.tasks.sandbox.verifier_process import main

if __name__ == "__main__":
    main()
