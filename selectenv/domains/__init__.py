"""The worlds that data are collected from and policies are evaluated in."""
