//! What is shown live under pseudonyms, on a screen, as lines and as metrics, held against the true addresses.

use super::tap::Heard;
use super::{Labels, Picture, Session, line, metrics, show, ui};
use crate::meter::{Captures, MeterArgs, find};
use crate::screen::Screen;
use cede_wire::link::LinkType;
use clap::Parser;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

const PACKETS: u64 = 60;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    meter: MeterArgs,
}

/// Who sends, and to whom; the interface's number of the last one is made of a hardware address.
fn pairs() -> [[IpAddr; 2]; 4] {
    let spelled = [
        ["203.0.113.9", "198.51.100.77"],
        ["203.0.113.207", "198.51.100.77"],
        ["2001:db8:77::41a0", "2001:db8:99::abcd"],
        ["2001:db8:77:0:211:22ff:fe33:4455", "2001:db8:99::abcd"],
    ];
    spelled.map(|pair| pair.map(|address| address.parse().unwrap()))
}

/// Each address, and each part of it that tells a net or a host of one, as they may be written.
fn spellings(address: IpAddr) -> Vec<String> {
    let parts = |numbers: Vec<String>, len: usize, between: &str| -> Vec<String> {
        numbers.windows(len).map(|part| part.join(between)).collect()
    };
    let mut all = vec![address.to_string()];
    match address {
        IpAddr::V4(v4) => all.extend(parts(v4.octets().map(|octet| octet.to_string()).into(), 3, ".")),
        IpAddr::V6(v6) => {
            let groups = v6.segments().map(|group| format!("{group:x}"));
            all.extend(
                parts(groups.to_vec(), 2, ":")
                    .into_iter()
                    .filter(|part| !part.contains("0:") && !part.contains(":0")),
            );
            all.push(groups.join(":"));
            all.push(v6.segments().map(|group| format!("{group:04x}")).join(":"));
            all.extend([groups[7].clone(), format!("{}::", groups[2]), format!("::{}", groups[7])]);
        }
    }
    all
}

fn check(what: &str, text: &str) {
    for spelled in pairs().into_iter().flatten().flat_map(spellings) {
        assert!(!text.contains(&spelled), "{what} says {spelled}: {text}");
    }
}

/// A segment of TCP with timestamps, without data.
fn segment([from, to]: [IpAddr; 2], clock: u32) -> Vec<u8> {
    let words = [5001 << 16 | 5002, 1, 1, 0x8010_0100, 0, 0x0101_080a, clock, 1_u32];
    let tcp = words.map(u32::to_be_bytes).concat();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            [&[0x45, 0, 0, 52, 0, 0, 0x40, 0, 64, 6, 0, 0], &from.octets()[..], &to.octets(), &tcp].concat()
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            [&[0x60, 0, 0, 0, 0, 32, 6, 64], &from.octets()[..], &to.octets(), &tcp].concat()
        }
        _ => unreachable!("one family"),
    }
}

/// What is to be seen after some packets of everybody, with a queue of each one's own.
fn picture(session: &mut Session<'_>) -> Picture {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    let begun_us = now - (PACKETS + 1) * 50_000;
    for k in 0..PACKETS {
        for (place, [from, to]) in (0_u64..).zip(pairs()) {
            for (ends, queue_us) in [([from, to], k % 5 * 1_000 * (1 + place)), ([to, from], 0)] {
                let sent_us = begun_us + k * 50_000 + place * 100;
                let frame = segment(ends, (sent_us / 1_000) as u32);
                session.meter.packet((sent_us + queue_us) * 1_000, LinkType::RAW, &frame, frame.len() as u32);
            }
        }
    }
    session.picture(&Heard { last_us: now, lost: 0, down: String::new() })
}

fn drawn(view: &mut ui::View, picture: &Picture, width: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, 30)).unwrap();
    terminal.draw(|frame| view.draw(frame, picture)).unwrap();
    let rows = terminal.backend().buffer().content().chunks(width.into());
    rows.flat_map(|row| row.iter().map(|cell| cell.symbol()).chain(["\n"])).collect()
}

#[test]
fn nothing_that_is_shown_live_under_pseudonyms_is_a_true_address() {
    let key = std::env::temp_dir().join(format!("cede-said-{}", std::process::id()));
    std::fs::write(&key, [7; 32]).unwrap();
    let args = Line::parse_from(["meter", "-i", "eth0", "--ui", "--min-samples", "5"]).meter;
    args.veil.put_on(Some(&key)).unwrap();
    std::fs::remove_file(&key).unwrap();
    let mut session = Session::new(&args).unwrap();
    let picture = picture(&mut session);
    assert_eq!(picture.rows.len(), 6);
    let mut view = ui::View::new("cede meter -i eth0".to_owned());
    view.remember(&picture);
    let whole = drawn(&mut view, &picture, 160);
    for address in pairs().into_iter().flatten() {
        assert!(whole.contains(&args.shown(address).to_string()), "{address}: {whole}");
    }
    // Each host chosen, and all orders of them.
    for key in ['k', 'j', 'j', 'j', 'j', 'j', 's', 's', 's', ' '] {
        view.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
        (1..160).step_by(9).for_each(|width| check("the screen", &drawn(&mut view, &picture, width)));
    }
    check("a line", &line::text(&picture));
    check("a line of JSON", &line::json(&picture));
    check("metrics", &metrics::text(&picture, &mut Labels::new(10)));
    let findings = find(&args, &Captures::named(&[]), &session.meter);
    check("the table in the end", &show::text(&args, &findings, &Screen::new(false)));
    check("where metrics are", &super::served_at(&args, (pairs()[0][0], 9464).into()));
}
