//! The command line of Cede: `demo`, `run`, `repro`, `lab`, `serve`, `send`, `recv`, `pipe`, `proxy`, `torrent`,
//! `inspect`, `meter`, `list`, `explain`, completions and man pages.
//!
//! **Invariant:** nothing here measures or decides; it reads arguments, calls the laboratory and shows what came of it.
//! Data go to standard output, words for people to standard error where both could be meant (`--json`).

mod callers;
mod captures;
mod carry;
mod check;
mod cli;
mod controllers;
mod dataset;
mod demo;
mod execute;
mod explain;
mod failure;
mod generate;
mod inspect;
mod interrupt;
mod lab;
mod list;
mod meter;
#[cfg(unix)]
mod pages;
mod progress;
mod repro;
mod run;
mod scenarios;
mod screen;
mod shell;
mod torrent;
mod veil;
mod whole;

use clap::Parser;
use cli::{Cli, Command};
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    interrupt::listen();
    match dispatch(&cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen::complain(&failure.words());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn dispatch(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Demo(args) => demo::demo(args),
        Command::Run(args) => run::run(args),
        Command::Repro(args) => repro::run(args),
        Command::Serve(args) => carry::serve::serve(args),
        Command::Send(args) => carry::send::send(args),
        Command::Recv(args) => carry::recv::recv(args),
        Command::Pipe(args) => carry::pipe::pipe(args),
        Command::Proxy(args) => carry::proxy::proxy(args),
        Command::Key(args) => carry::key::key(args),
        Command::Torrent(args) => torrent::run(args),
        Command::Inspect(args) => inspect::inspect(args),
        Command::Meter(args) => meter::meter(args),
        Command::Lab(args) => lab::run(args),
        Command::Check(args) => check::run(args),
        Command::List(args) => list::list(args),
        Command::Explain(args) => explain::explain(args),
        Command::ScenarioReference => explain::scenario_reference(),
        Command::Completions(args) => generate::completions(args),
        Command::Man(args) => generate::man(args),
    }
}
