"""Where the frozen verifier begins: an executable of its own, because its hash seed is fixed and its imports are few."""

from waggle.tasks.verifier_child import main

if __name__ == "__main__":
    main()
