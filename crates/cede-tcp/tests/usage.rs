//! Which window grows: one that was filled, by the present alone or by what whole flights made of it.

mod support;

use cede_tcp::Config;
use support::script::{SMSS, Script};

/// A sender whose first window of ten segments is not filled by the `segments` that there are to send; how much larger it is once they
/// are acknowledged one by one, in segments.
fn growth_after(config: &Config, segments: u64) -> u64 {
    let mut script = Script::bare(config, "reno");
    let before = script.window();
    script.write(segments);
    assert_eq!(script.sent().len() as u64, segments);
    (1..=segments).for_each(|number| assert!(script.ack(number, &[]).is_empty()));
    (script.window() - before) / SMSS
}

#[test]
fn in_slow_start_a_flight_of_more_than_half_the_window_lets_it_grow() {
    let by_flight = Config { usage_by_flight: true, ..Config::default() };
    assert_eq!(growth_after(&Config::default(), 6), 0);
    assert_eq!([4, 5].map(|segments| growth_after(&by_flight, segments)), [0, 0]);
    // Each adds a segment, until the window is twice the flight.
    assert_eq!([6, 8].map(|segments| growth_after(&by_flight, segments)), [2, 6]);
}

#[test]
fn a_window_that_was_filled_grows_until_that_flight_is_acknowledged() {
    let grown = |usage_by_flight: bool| {
        let mut script = Script::bare(&Config { usage_by_flight, ..Config::default() }, "reno");
        // Out of slow start: a loss among sixteen.
        script.write(16);
        assert_eq!(script.sent().len(), 10);
        (1..=4).for_each(|number| drop(script.ack(number, &[])));
        (7..=10).for_each(|number| drop(script.ack(4, &[(6, number)])));
        script.ack(16, &[]);
        let before = script.window();
        let mut acked = 16;
        let mut send = |script: &mut Script, segments: u64| {
            script.write(segments);
            script.sent();
            (1..=segments).for_each(|number| drop(script.ack(acked + number, &[])));
            acked += segments;
            script.window()
        };
        // It is full until there are two segments left to send, and then no more.
        let mut after = before;
        (0..10).for_each(|_| after = send(&mut script, after / SMSS + 2));
        let idle = (0..20).map(|_| send(&mut script, 3)).max().unwrap();
        ((after - before) / SMSS, (idle - after) / SMSS)
    };
    let ((present, idle), (flights, idle_by_flight)) = (grown(false), grown(true));
    assert_eq!((idle, idle_by_flight), (0, 0), "three segments fill nothing");
    assert!((10..=15).contains(&flights), "a segment for each window of them: {flights}");
    assert!(2 * present < flights, "{present}");
}
