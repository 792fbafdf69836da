//! Which tasks a server works on or keeps the results of: a new server would know none of them.
//!
//! A task is the server's answer to a call that is not answered at once. It is over when its result was fetched, when it
//! was cancelled or has failed, or when the time is up for which the server promised to keep it.

use std::collections::BTreeMap;
use std::time::Duration;

use memchr::memmem;
use serde::Deserialize;

/// An answer that is a task is short; no other is read for it.
const LONGEST: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// By id, until when the server keeps it, if it has said so.
    open: BTreeMap<String, Option<Duration>>,
    /// The client's calls for a result, by their ids.
    fetching: BTreeMap<Vec<u8>, String>,
}

/// A task as the server tells of it.
#[derive(Debug, Deserialize)]
struct Task {
    #[serde(rename = "taskId")]
    id: String,
    status: Option<String>,
    /// In milliseconds; `None` means for ever.
    ttl: Option<u64>,
}

/// It stands alone, or in what it is the answer to.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Told {
    Within { task: Task },
    Alone(Task),
}

#[derive(Debug, Deserialize)]
struct Message {
    #[serde(alias = "params")]
    result: Told,
}

impl Tasks {
    /// `now` is the time since boot, as in `hear`.
    pub(super) fn are_open(&self, now: Duration) -> bool {
        self.open.values().any(|until| until.is_none_or(|until| now < until))
    }

    /// The client asks for the result of a task.
    pub(super) fn asked_for(&mut self, id: &[u8], task: String) {
        self.fetching.insert(id.to_vec(), task);
    }

    /// The call with that id was answered or cancelled.
    pub(super) fn answered(&mut self, id: &[u8], with_result: bool) {
        if let Some(task) = self.fetching.remove(id).filter(|_| with_result) {
            self.open.remove(&task);
        }
    }

    /// The server has answered a call by that method, or tells of a task by itself. What it says of a task counts, whether
    /// it was asked or not.
    pub(super) fn hear(&mut self, method: &str, line: &[u8], now: Duration) {
        if line.len() > LONGEST || memmem::find(line, b"\"taskId\"").is_none() || !tells_of_tasks(method) {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Message>(line) else { return };
        let (Told::Within { task } | Told::Alone(task)) = message.result;
        if matches!(task.status.as_deref(), Some("failed" | "cancelled")) {
            self.open.remove(&task.id);
        } else {
            let until = task.ttl.map(|ttl| now.saturating_add(Duration::from_millis(ttl)));
            // The time counts from the beginning.
            self.open.entry(task.id).or_insert(until);
        }
    }
}

fn tells_of_tasks(method: &str) -> bool {
    matches!(method, "tools/call" | "tasks/get" | "tasks/cancel" | "notifications/tasks/status")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(100);

    fn after(lines: &[(&str, &str)]) -> Tasks {
        let mut tasks = Tasks::default();
        lines.iter().for_each(|(method, line)| tasks.hear(method, line.as_bytes(), NOW));
        tasks
    }

    const BEGUN: (&str, &str) =
        ("tools/call", r#"{"id":1,"result":{"task":{"taskId":"a","status":"working","ttl":60000}}}"#);

    #[test]
    fn a_task_is_open_until_its_result_is_fetched() {
        let completed =
            ("notifications/tasks/status", r#"{"params":{"taskId":"a","status":"completed","ttl":null}}"#);
        let mut tasks = after(&[BEGUN, completed]);
        assert!(tasks.are_open(NOW));
        tasks.asked_for(b"7", "a".into());
        tasks.answered(b"7", false);
        assert!(tasks.are_open(NOW), "an error is no result");
        tasks.asked_for(b"8", "a".into());
        tasks.answered(b"8", true);
        assert!(!tasks.are_open(NOW));
    }

    #[test]
    fn a_task_that_failed_or_was_cancelled_is_over() {
        for status in ["failed", "cancelled"] {
            let line = format!(r#"{{"id":2,"result":{{"taskId":"a","status":"{status}"}}}}"#);
            assert!(!after(&[BEGUN, ("tasks/get", &line)]).are_open(NOW));
        }
    }

    #[test]
    fn a_task_is_over_when_its_time_is_up() {
        let tasks = after(&[BEGUN]);
        assert!(tasks.are_open(NOW + Duration::from_secs(59)));
        assert!(!tasks.are_open(NOW + Duration::from_secs(60)));
    }

    #[test]
    fn what_only_speaks_of_tasks_is_none() {
        let words = ("tools/call", r#"{"id":1,"result":{"content":[{"text":"\"taskId\""}]}}"#);
        assert!(!after(&[words, ("prompts/get", BEGUN.1)]).are_open(NOW));
    }
}
