//! The process behind [`crate::innocents::Bystander`]: it catches every signal that can be caught, and tells on request
//! which ones came.
//!
//! One thread only. A line on stdin asks; the answer is one line on stdout, the numbers of the signals seen so far.
//! A signal sent before the question is in the answer: the kernel delivers what is pending before `read` returns to us.
//! EOF on stdin means that the test is gone, and so does the bystander.

use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::FORBIDDEN;

/// The hidden first argument.
pub(crate) const NAME: &str = "__bystander";

/// Watches until EOF.
pub(super) fn main() -> ExitCode {
    let answered = watch().and_then(|seen| answer_until_eof(&seen));
    if answered.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Seen = Vec<(i32, Arc<AtomicBool>)>;

fn watch() -> io::Result<Seen> {
    // glibc keeps 32 and 33 for itself.
    let catchable = (1..=31).chain(34..=64).filter(|signal| !FORBIDDEN.contains(signal));
    catchable
        .map(|signal| {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag))?;
            Ok((signal, flag))
        })
        .collect()
}

fn answer_until_eof(seen: &Seen) -> io::Result<()> {
    // `lines` retries a read that a signal has interrupted.
    for question in io::stdin().lock().lines() {
        question?;
        let numbers: Vec<String> =
            seen.iter().filter(|(_, flag)| flag.load(Ordering::SeqCst)).map(|(n, _)| n.to_string()).collect();
        io::stdout().write_all(format!("{}\n", numbers.join(" ")).as_bytes())?;
        io::stdout().flush()?;
    }
    Ok(())
}
