//! `cede completions` and `cede man`: made from the definition of the command line.

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::screen;
use clap::CommandFactory;
use std::io;

/// Prints completions for a shell.
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "cede", &mut text);
    print(&text)
}

/// Prints the man page of `cede`, or writes those of all commands into a folder.
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(folder) = &args.output else {
        let mut text = Vec::new();
        let rendered = clap_mangen::Man::new(Cli::command()).render(&mut text);
        rendered.map_err(|error| Failure::Failed(error.to_string()))?;
        return print(&text);
    };
    let failed = |error: io::Error| {
        let text = format!("cannot write man pages to {}: {error}", screen::named(folder));
        Failure::of_system(text, error.kind())
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)
}

fn print(text: &[u8]) -> Result<(), Failure> {
    screen::print(&String::from_utf8_lossy(text))
}
