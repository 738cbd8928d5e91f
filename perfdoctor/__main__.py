"""`python -m perfdoctor`: the same as the console script."""

from perfdoctor.cli import main

if __name__ == "__main__":
    main()
