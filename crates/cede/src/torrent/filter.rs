//! Addresses that are left alone (`--ip-filter`).

use crate::carry::numbers;
use crate::failure::Failure;
use crate::screen;
use cede_torrent::ip_filter::{IpFilter, Listed};
use std::path::Path;
use std::rc::Rc;

/// Reads the list, where there is one, and says what a person is told of it.
pub fn read(path: Option<&Path>) -> Result<(Rc<IpFilter>, Option<String>), Failure> {
    let Some(path) = path else { return Ok((Rc::default(), None)) };
    let name = screen::named(path);
    let listed = IpFilter::read(path).map_err(|error| {
        Failure::of_system(format!("--ip-filter: cannot read {name}: {error}"), error.kind())
    })?;
    match listed.first_unread {
        Some(line) if listed.filter.is_empty() => Err(Failure::Usage(format!(
            "--ip-filter: {name} has no addresses (line {line}, say, is none); take lines such as 192.0.2.0/24 or \
             name:192.0.2.1-192.0.2.9"
        ))),
        _ => {
            let headline = headline(&listed);
            Ok((Rc::new(listed.filter), Some(headline)))
        }
    }
}

fn headline(listed: &Listed) -> String {
    let ranges = numbers::count(listed.filter.ranges(), "range");
    let unread = listed.first_unread.map_or_else(String::new, |line| {
        let lines = numbers::count(listed.unread, "line");
        let are = if listed.unread == 1 { "is none" } else { "are none" };
        format!("; {lines} {are}, the first is line {line}")
    });
    format!("{ranges} of addresses left alone{unread}\n")
}
