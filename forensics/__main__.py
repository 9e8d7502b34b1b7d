"""`python -m forensics`: the command where its script is not on the path."""

from forensics.cli.main import main

if __name__ == "__main__":
    main()
