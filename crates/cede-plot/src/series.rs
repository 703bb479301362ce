//! What every medium needs to know of a series: its style slot and its corners.

use crate::figure::Panel;
use std::collections::BTreeMap;

/// The style slot of each series of each panel: equal names share one, in order of first appearance; slots
/// that were fixed are not given to others; a series without a name has the slot of its place in the panel.
pub(crate) fn slots(panels: &[Panel]) -> Vec<Vec<usize>> {
    let all = || panels.iter().flat_map(|panel| &panel.series);
    let fixed: Vec<usize> = all().filter_map(|series| series.slot).collect();
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    all().for_each(|s| {
        s.slot.map(|slot| by_name.entry(&s.name).or_insert(slot));
    });
    let mut free = (0..).filter(|slot| !fixed.contains(slot));
    for series in all().filter(|series| !series.name.is_empty()) {
        by_name.entry(&series.name).or_insert_with(|| free.next().unwrap_or(0));
    }
    let slot_of = |(place, series): (usize, &crate::Series)| match (series.slot, series.name.as_str()) {
        (Some(slot), _) => slot,
        (None, "") => place,
        (None, name) => by_name[name],
    };
    panels.iter().map(|panel| panel.series.iter().enumerate().map(slot_of).collect()).collect()
}

/// The corners of a line on which each value holds until the next point's x.
pub(crate) fn stairs(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().enumerate().flat_map(move |(i, &point)| {
        let held = i.checked_sub(1).map(|before| (point.0, points[before].1));
        held.into_iter().chain([point])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Series;

    #[test]
    fn equal_names_share_a_slot_and_fixed_slots_are_kept_free() {
        let series = |name: &str| Series::line(name, []);
        let first = Panel::new("").series(series("a")).series(series("b").slot(1)).series(series("c"));
        let second = Panel::new("").series(series("c")).series(series("")).series(series("a"));
        assert_eq!(slots(&[first, second]), [vec![0, 1, 2], vec![2, 1, 0]]);
    }

    #[test]
    fn stairs_hold_their_value() {
        let corners: Vec<_> = stairs(&[(0.0, 1.0), (2.0, 5.0), (3.0, 4.0)]).collect();
        assert_eq!(corners, [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (3.0, 5.0), (3.0, 4.0)]);
    }
}
