"""Where the frozen verifier begins, and what renders chat templates: an executable of their own, because the hash seed is
fixed and the imports are few."""

import sys

if sys.argv[1:] == ["template"]:
    from waggle.tasks.template_child import main
else:
    from waggle.tasks.verifier_child import main

if __name__ == "__main__":
    main()
