//! A host that refreshes its MCP servers over and over, as a long-running client does when its configuration changes, and
//! shows after each refresh that nothing of the earlier generations is left.
//!
//! ```text
//! refresh_daemon --refreshes 200 [--in-flight] [--end shutdown|drop|exit|panic] --server 'CMD ARG…' [--server …]
//! ```
//!
//! It connects to each server, then replaces the whole generation that often: every spec is changed, by a variable. With
//! `--in-flight` each refresh begins with a call in flight on a cloned handle, and all those clones are kept until the end,
//! as a careless host does. It prints one JSON line per refresh:
//!
//! ```json
//! {"refresh":1,"alive":4,"expected":4,"ended":4,"survivors":0}
//! ```
//!
//! `alive` counts every process that was ever started, `ended` those of the last generation that are gone, `survivors`
//! those of all earlier ones that are not. The other options are for the tests: `--by` lets generations give way without a
//! replacement, `--stats` writes down files, threads and memory of this process.
#![expect(clippy::print_stderr, reason = "a program's own words")]

mod daemon;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use daemon::{Calls, Everybody, Options, Problem};
use moored_client::{
    CallError, Event, EventSender, Events, Handle, ServerSet, ServerSpec, SetOptions, events,
};
use tokio::runtime::{Builder, Runtime};

fn main() -> ExitCode {
    let lived = Options::parse(std::env::args().skip(1)).and_then(|options| Daemon::start(options)?.live());
    match lived {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("refresh_daemon: {problem}");
            ExitCode::FAILURE
        }
    }
}

struct Daemon {
    options: Options,
    runtime: Runtime,
    set: ServerSet,
    events: Events,
    everybody: Everybody,
    /// The clones that a careless host keeps.
    escaped: Vec<Handle>,
    calls: Arc<Outcomes>,
}

#[derive(Default)]
struct Outcomes {
    answered: AtomicU64,
    cut: AtomicU64,
}

fn runtime() -> Result<Runtime, Problem> {
    Ok(Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

impl Daemon {
    fn start(options: Options) -> Result<Self, Problem> {
        let runtime = runtime()?;
        let (sender, events) = events();
        let set = runtime.block_on(connect(&options, 0, sender))?;
        let (everybody, calls) = (Everybody::default(), Arc::default());
        let mut daemon = Self { options, runtime, set, events, everybody, escaped: Vec::new(), calls };
        let first = daemon.newcomers();
        daemon.everybody.refreshed(first)?;
        Ok(daemon)
    }

    fn live(mut self) -> Result<(), Problem> {
        for refresh in 1..=self.options.refreshes {
            if self.options.in_flight {
                self.call_everyone()?;
            }
            match &*self.options.by {
                "replace" => self.replace(refresh)?,
                _ => self.give_way(refresh)?,
            }
            let newcomers = self.newcomers();
            let count = self.everybody.refreshed(newcomers)?;
            self.options.report(refresh, count, self.calls())?;
        }
        self.end()
    }

    /// The processes that were started since the last look.
    fn newcomers(&mut self) -> Vec<moored_containment::ProcessIdentity> {
        let started = |event| match event {
            Event::Started { process, .. } => Some(process),
            _ => None,
        };
        std::iter::from_fn(|| self.events.try_next()).filter_map(started).collect()
    }

    fn calls(&self) -> Calls {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Calls { answered: read(&self.calls.answered), cut: read(&self.calls.cut) }
    }

    /// A call in flight on a clone of each handle. It has been sent when this returns: the answers to a question that was
    /// asked after it have come back.
    fn call_everyone(&mut self) -> Result<(), Problem> {
        for handle in self.set.servers() {
            let (escaped, calls) = (handle.clone(), self.calls.clone());
            self.escaped.push(handle.clone());
            let tools = self.runtime.block_on(handle.list_all_tools())?;
            let Some(call) = self.options.call(&tools) else { continue };
            self.runtime.spawn(async move {
                match escaped.call_tool(call).await {
                    Ok(_) | Err(CallError::Service { .. }) => calls.answered.fetch_add(1, Ordering::Relaxed),
                    Err(_) => calls.cut.fetch_add(1, Ordering::Relaxed),
                }
            });
            self.runtime.block_on(handle.list_all_tools())?;
        }
        Ok(())
    }

    fn replace(&mut self, refresh: u64) -> Result<(), Problem> {
        let replaced = self.runtime.block_on(self.set.replace(specs(&self.options, refresh)))?;
        for server in &replaced.ended {
            let verified = matches!(&server.outcome, Some(Ok(report)) if report.verified);
            if !verified {
                return Err(format!("`{}` was not ended: {:?}", server.name, server.outcome).into());
            }
        }
        Ok(())
    }

    /// The new generation is another set, and the old one ends as it is told to.
    fn give_way(&mut self, refresh: u64) -> Result<(), Problem> {
        let (sender, events) = events();
        let next = if self.options.by == "runtime" { Some(runtime()?) } else { None };
        let on = next.as_ref().unwrap_or(&self.runtime);
        let set = on.block_on(connect(&self.options, refresh, sender))?;
        let old = std::mem::replace(&mut self.set, set);
        self.events = events;
        match (&*self.options.by, next) {
            ("panic", _) => {
                std::panic::set_hook(Box::new(|_| {}));
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    let _old = old;
                    panic!("as asked for");
                }));
                drop(std::panic::take_hook());
                debug_assert!(panicked.is_err());
            }
            (_, Some(next)) => {
                // The tasks of the old set are gone before the set is.
                drop(std::mem::replace(&mut self.runtime, next));
                drop(old);
            }
            _ => drop(old),
        }
        Ok(())
    }

    fn end(self) -> Result<(), Problem> {
        match &*self.options.end {
            "shutdown" => {
                let reports = self.runtime.block_on(self.set.shutdown());
                let unproven = reports.iter().filter(|report| !report.verified).count();
                if unproven > 0 { Err(format!("{unproven} endings are not proven").into()) } else { Ok(()) }
            }
            "exit" => std::process::exit(0),
            "panic" => panic!("as asked for"),
            "hold" => {
                // To be killed; but not to outlive whoever holds the other end.
                std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
                Ok(())
            }
            "runtime" => {
                drop(self.runtime);
                drop(self.set);
                Ok(())
            }
            _ => {
                drop(self.set);
                Ok(())
            }
        }
    }
}

fn specs(options: &Options, refresh: u64) -> Vec<ServerSpec> {
    let spec = |(index, argv): (usize, &Vec<String>)| {
        ServerSpec::new(format!("server-{index}"), &argv[0])
            .args(&argv[1..])
            .env("REFRESH", refresh.to_string())
    };
    options.servers.iter().enumerate().map(spec).collect()
}

async fn connect(options: &Options, refresh: u64, events: EventSender) -> Result<ServerSet, Problem> {
    let set_options = SetOptions::default().drain(options.drain).events(events);
    let set = ServerSet::connect(specs(options, refresh), set_options).await?;
    match set.failures().first() {
        Some(failed) => Err(format!("`{}` did not come up: {}", failed.name, failed.error).into()),
        None => Ok(set),
    }
}
