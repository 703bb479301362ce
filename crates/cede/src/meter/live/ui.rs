//! The picture as a screen that updates.

use super::picture::{Picture, Row as HostRow};
use crate::carry::numbers::count;
use crate::failure::Failure;
use crate::interrupt;
use crate::screen::wrapped;
use cede_meter::Summary;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};

/// Intervals of a host that are drawn, and hosts that they are kept of.
const HISTORY: usize = 240;
const HISTORIES_MAX: usize = 512;
/// Hosts that the table has at most.
const ROWS_MAX: usize = 1000;
/// Lines of the chart, and of the table at least.
const CHART_LINES: usize = 6;
const TABLE_LINES_MIN: u16 = 4;
/// Hard spaces are where no line ends.
const HELP: &str = "q\u{a0}quit\u{a0} s\u{a0}sort\u{a0} space\u{a0}pause\u{a0} ↑↓\u{a0}choose\u{a0}\u{a0}\u{a0} a flag's meaning: cede\u{a0}explain\u{a0}NAME";
const HEADINGS: [&str; 9] = ["host", "via", "now", "mean", "p50", "p95", "max", "> 100 ms", "flags"];

/// By what hosts are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Order {
    #[default]
    Mean,
    Now,
    P95,
    Max,
}

/// What a key asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    Nothing,
    Redraw,
    Quit,
}

/// What the person at the screen chose, and what was drawn before.
#[derive(Default)]
pub struct View {
    order: Order,
    selected: usize,
    is_paused: bool,
    /// Means of intervals in microseconds.
    histories: HashMap<IpAddr, VecDeque<u64>>,
    /// What is watched, in words.
    title: String,
}

/// A terminal that is given back when this goes.
pub struct Screen {
    /// Until this goes.
    terminal: Option<DefaultTerminal>,
    events: Receiver<Event>,
}

impl Screen {
    /// Takes the terminal.
    pub fn open() -> Result<Self, Failure> {
        let told = |error| Failure::Usage(format!("--ui needs a terminal: {error}"));
        // Whoever asks twice for the end must not be left with a terminal that shows nothing of what is typed.
        interrupt::insist_on_order();
        let terminal = ratatui::try_init().map_err(told)?;
        let (sender, events) = channel();
        // On a thread of its own: of a terminal that is closed the library reads without end, and there is no other way out of that.
        let listen = move || while event::read().is_ok_and(|event| sender.send(event).is_ok()) {};
        let begun = std::thread::Builder::new().name("keys".to_string()).spawn(listen);
        let screen = Self { terminal: Some(terminal), events };
        begun.map(|_| screen).map_err(told)
    }

    /// What the keys pressed since the last time ask for; the end, where the terminal is closed.
    pub fn wish(&self, view: &mut View) -> Wish {
        let mut wish = if is_closed(std::io::stdout()) { Wish::Quit } else { Wish::Nothing };
        while let (true, Ok(event)) = (wish != Wish::Quit, self.events.try_recv()) {
            let asked = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => view.press(key),
                Event::Resize(..) => Wish::Redraw,
                _ => Wish::Nothing,
            };
            if asked != Wish::Nothing {
                wish = asked;
            }
        }
        wish
    }

    /// Draws.
    pub fn draw(&mut self, view: &mut View, picture: &Picture) {
        // What a terminal does not take now it gets the next time.
        let _ = self.terminal.as_mut().map(|terminal| terminal.draw(|frame| view.draw(frame, picture)));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
        // Of one that is closed nothing can be given back. The library says so on standard error, and where that is closed, too, it ends the
        // program by an abort, before the table and the exit code.
        if let Some(mut terminal) = self.terminal.take()
            && terminal.show_cursor().is_err()
        {
            std::mem::forget(terminal);
        }
        interrupt::insist_no_more();
    }
}

/// Whether nobody is at the other end of a terminal any more.
fn is_closed(terminal: impl AsFd) -> bool {
    let mut asked = [PollFd::new(&terminal, PollFlags::empty())];
    let told = poll(&mut asked, Some(&Timespec::default()));
    told.is_ok() && asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

impl View {
    /// A view of what is called this.
    pub fn new(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    /// Does what a key asks for.
    pub fn press(&mut self, key: KeyEvent) -> Wish {
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Wish::Quit,
            KeyCode::Char('q') | KeyCode::Esc => return Wish::Quit,
            KeyCode::Char('s') => {
                self.order = match self.order {
                    Order::Mean => Order::Now,
                    Order::Now => Order::P95,
                    Order::P95 => Order::Max,
                    Order::Max => Order::Mean,
                }
            }
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Down | KeyCode::Char('j') => self.selected = (self.selected + 1).min(ROWS_MAX),
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Home => self.selected = 0,
            _ => return Wish::Nothing,
        }
        Wish::Redraw
    }

    /// Whether the picture is to stand still.
    pub const fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Keeps what is drawn over time.
    pub fn remember(&mut self, picture: &Picture) {
        let there: HashMap<IpAddr, u64> = picture
            .rows
            .iter()
            .map(|row| (row.host.address, row.now.as_ref().map_or(0, |now| (now.time_mean_ms * 1e3) as u64)))
            .collect();
        self.histories.retain(|address, _| there.contains_key(address));
        for row in &picture.rows {
            let address = row.host.address;
            if self.histories.len() >= HISTORIES_MAX && !self.histories.contains_key(&address) {
                continue;
            }
            let history = self.histories.entry(address).or_default();
            history.push_back(there[&address]);
            if history.len() > HISTORY {
                history.pop_front();
            }
        }
    }

    /// Draws everything.
    pub fn draw(&mut self, frame: &mut Frame<'_>, picture: &Picture) {
        let width = frame.area().width;
        let rows = self.sorted(picture);
        self.selected = self.selected.min(rows.len().saturating_sub(1));
        let selected = rows.get(self.selected);
        let header = self.header(picture, width);
        // The table, and the chart's frame, may have no room for all of them.
        let flags = lines(&selected.map_or_else(String::new, |row| flags(row)), width);
        let help = lines(HELP, width);
        let heights =
            [header.len(), CHART_LINES, flags.len(), help.len()].map(|len| Constraint::Length(len as u16));
        let [head, chart, flagged, keys] = heights;
        let parts = [head, Constraint::Min(TABLE_LINES_MIN), chart, flagged, keys];
        let [head, table, chart, flagged, keys] = Layout::vertical(parts).areas(frame.area());
        frame.render_widget(Paragraph::new(header), head);
        self.draw_table(frame, table, &rows);
        if let Some(row) = selected {
            self.draw_chart(frame, chart, row);
        }
        frame.render_widget(Paragraph::new(flags), flagged);
        frame.render_widget(Paragraph::new(help).dim(), keys);
    }

    /// What is watched and how much of it, in lines that are no wider than the screen.
    fn header(&self, picture: &Picture, width: u16) -> Vec<Line<'static>> {
        let counters = &picture.counters;
        let first = format!(
            "{}\u{a0}\u{a0} {:.0}\u{a0}s, {}\u{a0}packets, {:.0}\u{a0}packets/s, {:.1}\u{a0}Mbit/s",
            self.title,
            picture.running_s,
            counters.packets,
            picture.packets_per_s,
            picture.bits_per_s / 1e6,
        );
        let second = format!(
            "{}, {}, {:.1}\u{a0}MB; given up: {}; left out: {}\u{a0}samples, {}\u{a0}packets",
            whole(picture.rows.len(), "host"),
            whole(picture.flows, "flow"),
            picture.memory_bytes as f64 / 1e6,
            whole(counters.evicted as usize, "flow"),
            counters.thinned,
            picture.lost
        );
        let is_down = format!("{} down", picture.down);
        let (third, is_calm) = match (self.is_paused, &*picture.down) {
            (true, _) => ("paused; space goes on", false),
            (false, "") => ("queueing delay in ms: now, and all that is kept", true),
            (false, _) => (&*is_down, false),
        };
        let third =
            lines(third, width).into_iter().map(|line| if is_calm { line.dim() } else { line.bold() });
        let first = lines(&first, width).into_iter().map(Line::bold);
        first.chain(lines(&second, width)).chain(third).collect()
    }

    fn sorted<'a>(&self, picture: &'a Picture) -> Vec<&'a HostRow> {
        let mut rows: Vec<&HostRow> = picture.rows.iter().collect();
        let order = self.order;
        let value = move |row: &HostRow| match order {
            Order::Mean => row.host.all.time_mean_ms,
            Order::Now => row.now.as_ref().map_or(-1.0, |now| now.time_mean_ms),
            Order::P95 => row.host.all.p95_ms,
            Order::Max => row.host.all.max_ms,
        };
        rows.sort_by(|a, b| value(b).total_cmp(&value(a)).then(a.host.address.cmp(&b.host.address)));
        rows.truncate(ROWS_MAX);
        rows
    }

    fn draw_table(&self, frame: &mut Frame<'_>, area: Rect, rows: &[&HostRow]) {
        let sorted_by = match self.order {
            Order::Now => 2,
            Order::Mean => 3,
            Order::P95 => 5,
            Order::Max => 6,
        };
        let headings = HEADINGS.iter().enumerate().map(|(k, &heading)| {
            if k == sorted_by { Cell::from(format!("{heading} ▼")).bold() } else { Cell::from(heading) }
        });
        let longest = rows.iter().map(|row| row.host.address.to_string().len()).max().unwrap_or(0);
        let table = Table::new(rows.iter().map(|row| cells(row)), columns(area.width, longest))
            .header(Row::new(headings).style(Style::new().underlined()))
            .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        let mut state = TableState::default().with_selected(Some(self.selected));
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn draw_chart(&self, frame: &mut Frame<'_>, area: Rect, row: &HostRow) {
        let history = self.histories.get(&row.host.address);
        let data: Vec<u64> = history.into_iter().flatten().copied().collect();
        let room = usize::from(area.width.saturating_sub(2));
        let most = data.iter().max().copied().unwrap_or(0);
        let (host, most_ms) = (row.host.address, most as f64 / 1e3);
        let titles = [
            format!(" {host}: queueing delay of each interval, up to {most_ms:.1} ms "),
            format!(" {host}: up to {most_ms:.1} ms "),
            format!(" up to {most_ms:.1} ms "),
        ];
        let title = titles.into_iter().find(|title| title.chars().count() <= room).unwrap_or_default();
        let block = Block::bordered().title(title);
        let chart = Sparkline::default().block(block).max(most.max(1));
        frame.render_widget(chart.data(&data[data.len().saturating_sub(room)..]), area);
    }
}

/// "3 flows", which no line ends within.
fn whole(number: usize, noun: &str) -> String {
    count(number, noun).replace(' ', "\u{a0}")
}

/// A text in lines of so many columns; none, where there is no text.
fn lines(text: &str, width: u16) -> Vec<Line<'static>> {
    let wrapped = wrapped("", text, width.into());
    wrapped.lines().filter(|line| !line.is_empty()).map(|line| Line::from(line.to_owned())).collect()
}

fn cells<'a>(row: &HostRow) -> Row<'a> {
    let HostRow { host, now } = row;
    let via = match (&host.utp, &host.tcp) {
        (Some(_), Some(_)) => "uTP TCP",
        (Some(_), None) => "uTP",
        _ => "TCP",
    };
    let ms = |value: f64| Cell::from(format!("{value:.1}")).style(shade(value));
    let all: &Summary = &host.all;
    let bloated = format!("{:.0} %", 100.0 * all.bloated_s / all.covered_s.max(1e-9));
    Row::new([
        Cell::from(host.address.to_string()),
        Cell::from(via),
        now.as_ref().map_or_else(|| Cell::from("–"), |now| ms(now.time_mean_ms)),
        ms(all.time_mean_ms),
        ms(all.p50_ms),
        ms(all.p95_ms),
        ms(all.max_ms),
        Cell::from(bloated),
        Cell::from(flags(row)),
    ])
}

fn flags(row: &HostRow) -> String {
    row.host.flags.names().collect::<Vec<_>>().join(" ")
}

/// The widths of the columns that there is room for, the flags' last, which have the rest: a number that is cut short looks like a smaller one.
/// A narrow screen shows the whole of an IPv4 address at least, a wide one all of the longest address that there is.
fn columns(width: u16, longest: usize) -> Vec<Constraint> {
    const FLAGS_MIN: u16 = 6;
    let widths = if width < 100 {
        [15, 7, 7, 7, 7, 7, 7, 8, FLAGS_MIN]
    } else {
        [longest.clamp(15, 39) as u16, 7, 9, 9, 9, 9, 9, 8, FLAGS_MIN]
    };
    let mut taken = 0;
    let fit = widths.iter().take_while(|&&column| {
        taken += column;
        let fits = taken <= width;
        // A space stands between two.
        taken += 1;
        fits
    });
    // The host is shown as far as that goes.
    let count = fit.count().max(1);
    let of = |(k, &column)| if k == 8 { Constraint::Min(column) } else { Constraint::Length(column) };
    widths[..count].iter().enumerate().map(of).collect()
}

/// 100 ms is what counts as bufferbloat; half a second ruins everything.
fn shade(ms: f64) -> Style {
    match ms {
        ms if ms >= 500.0 => Style::new().fg(Color::Red),
        ms if ms >= 100.0 => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::picture::testing::picture;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn drawn(view: &mut View, picture: &Picture) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(110, 24)).unwrap();
        terminal.draw(|frame| view.draw(frame, picture)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        buffer.content().chunks(110).map(|row| row.iter().map(|cell| cell.symbol()).collect()).collect()
    }

    #[test]
    fn the_worst_host_is_at_the_top_and_what_was_shed_is_told() {
        let mut view = View::new("cede meter -i eth0".to_string());
        let picture = picture([1_u8, 200, 7].into_iter());
        view.remember(&picture);
        let lines = drawn(&mut view, &picture);
        assert!(lines[0].starts_with("cede meter -i eth0   12 s"), "{lines:#?}");
        assert!(lines[1].contains("given up: 3 flows; left out: 4 samples, 5 packets"), "{lines:#?}");
        assert!(lines[3].contains("mean ▼"), "{lines:#?}");
        assert!(
            lines[4].starts_with("10.0.0.200") && lines[4].contains("200.0") && lines[4].contains("short")
        );
        assert!(lines[6].starts_with("10.0.0.1 "), "{lines:#?}");
        assert!(
            lines
                .iter()
                .any(|line| line.contains("10.0.0.200: queueing delay of each interval, up to 200.0 ms"))
        );
    }

    #[test]
    fn keys_choose_sort_pause_and_quit() {
        let mut view = View::new(String::new());
        let picture = picture([1_u8, 2].into_iter());
        let mut press = |code| view.press(KeyEvent::new(code, KeyModifiers::NONE));
        assert_eq!((press(KeyCode::Char('x')), press(KeyCode::Down)), (Wish::Nothing, Wish::Redraw));
        assert_eq!((press(KeyCode::Char('s')), press(KeyCode::Char(' '))), (Wish::Redraw, Wish::Redraw));
        assert_eq!(press(KeyCode::Char('q')), Wish::Quit);
        assert!(view.is_paused());
        assert!(drawn(&mut view, &picture)[2].starts_with("paused; space goes on"));
        let lines = drawn(&mut view, &picture);
        assert!(lines[3].contains("now ▼") && lines.iter().any(|line| line.contains("10.0.0.1: queueing")));
        let mut narrow = Terminal::new(TestBackend::new(80, 24)).unwrap();
        let mut long = super::super::picture::testing::picture([1].into_iter());
        long.rows[0].host.address = [203, 0, 113, 207].into();
        narrow.draw(|frame| view.draw(frame, &long)).unwrap();
        let shown: String = narrow.backend().buffer().content().iter().map(|cell| cell.symbol()).collect();
        assert!(shown.contains("203.0.113.207 "), "the whole address");
        // In a window of any width there are whole numbers or none.
        let picture = super::super::picture::testing::picture([201].into_iter());
        for width in 1..120 {
            let mut narrow = Terminal::new(TestBackend::new(width, 60)).unwrap();
            narrow.draw(|frame| view.draw(frame, &picture)).unwrap();
            let rows = narrow.backend().buffer().content().chunks(width.into());
            let mut rows = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
            let row = rows.find(|row| row.starts_with("10.0.0.201")).unwrap_or_default();
            assert!(width < 15 || !row.is_empty(), "{width}");
            let whole = ["10.0.0.201", "uTP", "TCP", "200.0", "201.0", "0", "100", "%", "–", "short"];
            let words: Vec<&str> = row.split_whitespace().collect();
            assert!(width < 15 || words.iter().all(|word| whole.contains(word)), "{width}: {words:?}");
        }
        // And all the words of the header, of the flags and of the keys.
        let picture = super::super::picture::testing::picture([201].into_iter());
        for width in 24..100 {
            let mut narrow = Terminal::new(TestBackend::new(width, 40)).unwrap();
            let mut view = View::new("cede meter -i eth0, last 10 min".to_string());
            narrow.draw(|frame| view.draw(frame, &picture)).unwrap();
            let rows = narrow.backend().buffer().content().chunks(width.into());
            let text: String =
                rows.flat_map(|row| row.iter().map(|cell| cell.symbol()).chain([" "])).collect();
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for wanted in [
                "cede meter -i eth0, last 10 min 12 s, 0 packets, 10 packets/s, 1.0 Mbit/s",
                "1 host, 7 flows, 1.0 MB; given up: 3 flows; left out: 4 samples, 5 packets",
                "queueing delay in ms: now, and all that is kept",
                "q quit s sort space pause ↑↓ choose a flag's meaning: cede explain NAME",
                "up to 0.0 ms",
                "┘ short",
            ] {
                assert!(words.contains(wanted), "{width}: {words}");
            }
        }
        // Nothing to show is no reason to fail.
        drawn(&mut view, &super::super::picture::testing::picture(std::iter::empty()));
    }
}
