//! History, on real files and with real processes.

mod agreement;
mod crowds;
mod faults;
mod idle;
mod migration;
mod program;
mod retention;
mod samples;
mod spool;
mod stores;
