//! `moored ps`: every server that moored runs, as a table, a tree, JSON or bare ids.

use anstyle::Style;
use moored_operator::{Listing, ServerRow, Verdict, Which};
use moored_registry::control::RunState;

use super::say_all;
use crate::args::PsArgs;
use crate::exit::{Exit, Failure};
use crate::render::{self, BAD, DIM, GOOD, Node, Table};

/// Of a command in a table.
const LONGEST_COMMAND: usize = 60;

pub(super) fn run(args: &PsArgs) -> Result<Exit, Failure> {
    let which = if args.all { Which::All } else { Which::Alive };
    let Listing { rows, warnings } = super::operator().list(which)?;
    say_all(&warnings);
    if args.json {
        render::json("servers", &rows)?;
    } else if args.quiet {
        render::out(&rows.iter().map(|row| format!("{}\n", row.id)).collect::<String>())?;
    } else if args.tree {
        render::out(&trees(&rows))?;
    } else {
        render::out(&table(&rows).text())?;
    }
    Ok(Exit::Ok)
}

const HEAD: [&str; 11] =
    ["ID", "NAME", "STATE", "VERDICT", "CLIENT", "PID", "PROCS", "RSS", "CPU", "UP", "COMMAND"];

fn table(rows: &[ServerRow]) -> Table {
    let ids = render::short_ids(&rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>());
    let mut table = Table::new(&HEAD);
    for (row, id) in rows.iter().zip(ids) {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let plain = |text: String| (text, Style::new());
        table.styled_row([
            plain(id),
            plain(row.name.clone()),
            (state_word(row.state).to_owned(), state_style(row.state)),
            (verdict_word(row.verdict).to_owned(), verdict_style(row.verdict)),
            plain(or_none(row.client.as_ref().map(|client| format!("{} ({})", client.name, client.pid)))),
            plain(or_none(row.pid.map(|pid| pid.to_string()))),
            plain(row.processes.len().to_string()),
            plain(render::bytes(row.rss_bytes)),
            plain(render::percent(row.cpu_percent)),
            plain(render::span(row.uptime_seconds)),
            plain(render::command_line(&row.command, LONGEST_COMMAND)),
        ]);
    }
    table
}

/// Each line of the table with the processes of that server below it.
fn trees(rows: &[ServerRow]) -> String {
    let text = table(rows).text();
    let mut lines = text.lines();
    let mut out = lines.next().map(|head| format!("{head}\n")).unwrap_or_default();
    for (line, row) in lines.zip(rows) {
        out.push_str(&format!("{line}\n"));
        out.push_str(&process_tree(row));
    }
    out
}

/// The processes of one server, each below its parent.
pub(super) fn process_tree(row: &ServerRow) -> String {
    let nodes: Vec<Node> = row
        .processes
        .iter()
        .map(|process| {
            let command = render::command_line(&process.command, LONGEST_COMMAND);
            let text =
                format!("{} {}  {}  {command}", process.pid, process.state, render::bytes(process.rss_bytes));
            Node { pid: process.pid, parent: process.ppid, text }
        })
        .collect();
    render::tree(&nodes)
}

/// As in the JSON.
pub(super) fn state_word(state: RunState) -> &'static str {
    match state {
        RunState::Starting => "starting",
        RunState::Running => "running",
        RunState::Hibernating => "hibernating",
        RunState::BackingOff => "backing-off",
        RunState::Ending => "ending",
        RunState::Ended => "ended",
    }
}

fn state_style(state: RunState) -> Style {
    match state {
        RunState::Running => GOOD,
        RunState::Hibernating | RunState::Ended => DIM,
        RunState::Starting | RunState::BackingOff | RunState::Ending => Style::new(),
    }
}

/// As in the JSON.
pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Attached => "attached",
        Verdict::Superseded => "superseded",
        Verdict::Lingering => "lingering",
        // There may be more of them; the reason says what.
        _ => "unknown",
    }
}

fn verdict_style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Lingering | Verdict::Superseded => BAD,
        _ => Style::new(),
    }
}
