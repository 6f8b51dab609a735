"""The documentation site: collects the Markdown pages, generates the reference, builds, and checks links."""
