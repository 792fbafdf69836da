//! What is alive on this host, and whose it is: facts in, verdicts out. The sweep plan is pure; its execution signals only what it holds.
