//! Colours, dashes and markers, chosen so that a figure reads in colour, to the colour-blind and in print.
//!
//! Source of the series colours: M. Okabe and K. Ito, "Color Universal Design" (2008), ordered here by how
//! well they stand out on white, with the yellow darkened because a thin yellow line vanishes there.

/// How many colours there are. The ninth series has the first one's colour with another dash and another marker, and so on
/// for six rounds.
pub const SLOTS: usize = 8;

/// The place of a slot in a list of [`SLOTS`] dashes or markers: each round over the colours begins one further.
const fn turned(slot: usize) -> usize {
    (slot + slot / SLOTS) % SLOTS
}

const SERIES: [[u8; 3]; SLOTS] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0xcc, 0x79, 0xa7],
    [0xe6, 0x9f, 0x00],
    [0x56, 0xb4, 0xe9],
    [0x33, 0x33, 0x33],
    [0xb3, 0xa3, 0x00],
];

/// A colour by its role, so that a page in dark dress can answer each role with a colour of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Paper,
    Ink,
    Muted,
    Frame,
    Grid,
    MinorGrid,
    Shade,
    Series(usize),
}

impl Paint {
    /// Red, green, blue on a light background.
    pub(crate) fn rgb(self) -> [u8; 3] {
        match self {
            Paint::Paper => [0xff, 0xff, 0xff],
            Paint::Ink => [0x1d, 0x23, 0x2b],
            Paint::Muted => [0x5a, 0x64, 0x70],
            Paint::Frame => [0x7d, 0x87, 0x93],
            Paint::Grid => [0xdf, 0xe3, 0xe8],
            Paint::MinorGrid => [0xf0, 0xf2, 0xf4],
            Paint::Shade => [0x8a, 0x97, 0xa6],
            Paint::Series(slot) => SERIES[slot % SLOTS],
        }
    }

    /// `#rrggbb` on a light background.
    pub(crate) fn hex(self) -> String {
        let [r, g, b] = self.rgb();
        format!("#{r:02x}{g:02x}{b:02x}")
    }

    /// The CSS custom property that a report sets for this role.
    pub(crate) fn variable(self) -> String {
        match self {
            Paint::Paper => "--p-paper".into(),
            Paint::Ink => "--p-ink".into(),
            Paint::Muted => "--p-muted".into(),
            Paint::Frame => "--p-frame".into(),
            Paint::Grid => "--p-grid".into(),
            Paint::MinorGrid => "--p-minor".into(),
            Paint::Shade => "--p-shade".into(),
            Paint::Series(slot) => format!("--p-s{}", slot % SLOTS),
        }
    }
}

/// How a line is broken up, so that lines differ without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// Unbroken.
    Solid,
    /// Long dashes.
    Dashed,
    /// Dots.
    Dotted,
    /// Dash and dot by turns.
    DashDot,
    /// Very long dashes.
    LongDash,
    /// A dash and two dots by turns.
    DashDotDot,
}

impl Dash {
    /// The dash of a series slot.
    pub(crate) fn of_slot(slot: usize) -> Self {
        use Dash::*;
        [Solid, Dashed, DashDot, Dotted, LongDash, DashDotDot, Dashed, Dotted][turned(slot)]
    }

    /// Lengths of dash and gap by turns, in figure units; empty for an unbroken line.
    pub(crate) fn lengths(self) -> &'static [f64] {
        match self {
            Dash::Solid => &[],
            Dash::Dashed => &[6.0, 2.5],
            Dash::Dotted => &[1.8, 2.2],
            Dash::DashDot => &[7.0, 2.5, 1.8, 2.5],
            Dash::LongDash => &[12.0, 3.0],
            Dash::DashDotDot => &[7.0, 2.2, 1.8, 2.2, 1.8, 2.2],
        }
    }
}

/// The mark that stands on each point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A triangle, point up.
    Triangle,
    /// A square on its corner.
    Diamond,
    /// A triangle, point down.
    TriangleDown,
    /// An upright cross.
    Plus,
    /// A five-pointed star.
    Star,
    /// A hexagon.
    Hexagon,
}

impl Marker {
    /// The marker of a series slot.
    pub(crate) fn of_slot(slot: usize) -> Self {
        use Marker::*;
        [Circle, Square, Triangle, Diamond, TriangleDown, Plus, Star, Hexagon][turned(slot)]
    }

    /// The character that stands for this marker in a terminal.
    pub(crate) fn glyph(self) -> char {
        match self {
            Marker::Circle => '●',
            Marker::Square => '■',
            Marker::Triangle => '▲',
            Marker::Diamond => '◆',
            Marker::TriangleDown => '▼',
            Marker::Plus => '✚',
            Marker::Star => '★',
            Marker::Hexagon => '⬢',
        }
    }

    /// Corners about the origin for a marker as wide as a disc of radius 1; `None` for the disc itself.
    /// Every shape has about the disc's area, so that none looks heavier than another.
    pub(crate) fn corners(self) -> Option<Vec<(f64, f64)>> {
        match self {
            Marker::Circle => None,
            Marker::Square => Some(regular(4, 1.25, std::f64::consts::FRAC_PI_4)),
            Marker::Diamond => Some(regular(4, 1.3, 0.0)),
            Marker::Triangle => Some(regular(3, 1.45, 0.0)),
            Marker::TriangleDown => Some(regular(3, 1.45, std::f64::consts::PI)),
            Marker::Hexagon => Some(regular(6, 1.15, 0.0)),
            Marker::Star => Some(star()),
            Marker::Plus => Some(plus()),
        }
    }
}

/// `count` corners on a circle of `radius`, the first one straight up turned by `turn` radians.
fn regular(count: usize, radius: f64, turn: f64) -> Vec<(f64, f64)> {
    let corner = |k: usize| {
        let angle = turn + std::f64::consts::TAU * k as f64 / count as f64;
        (radius * angle.sin(), -radius * angle.cos())
    };
    (0..count).map(corner).collect()
}

fn star() -> Vec<(f64, f64)> {
    let outer = regular(5, 1.5, 0.0);
    let inner = regular(5, 0.68, std::f64::consts::PI / 5.0);
    outer.into_iter().zip(inner).flat_map(|(tip, dent)| [tip, dent]).collect()
}

fn plus() -> Vec<(f64, f64)> {
    const ARM: f64 = 1.3;
    const HALF: f64 = 0.42;
    let quarter = [(-HALF, -ARM), (HALF, -ARM), (HALF, -HALF)];
    let turns = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
    let turned = |(c, s): (f64, f64)| quarter.map(|(x, y)| (x * c - y * s, x * s + y * c));
    turns.into_iter().flat_map(turned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_beyond_the_colours_looks_like_none_that_has_the_same_colour() {
        let look = |slot| (Paint::Series(slot).hex(), Dash::of_slot(slot), Marker::of_slot(slot));
        for slot in 0..6 * SLOTS {
            for earlier in (0..slot).filter(|earlier| look(*earlier).0 == look(slot).0) {
                assert_ne!(look(slot).2, look(earlier).2, "{slot} {earlier}");
            }
        }
        for slot in SLOTS..2 * SLOTS {
            let first = slot - SLOTS;
            assert_eq!(Paint::Series(slot).hex(), Paint::Series(first).hex());
            assert_ne!(Dash::of_slot(slot), Dash::of_slot(first), "{slot}");
        }
    }
}
