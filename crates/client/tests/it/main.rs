//! Promises on real processes: hosts of their own, ended in every way, and what is left of them.

mod comparison;
mod dependencies;
mod host;
mod listed;
mod refreshes;
mod scenarios;
