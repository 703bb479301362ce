//! Pictures of all sorts of data: well-formed, of the right size, and with something on them.

use cede_plot::html::{Report, Section};
use cede_plot::{Axis, Dash, Figure, Legend, Marker, Panel, PngError, Series};

fn two_panels() -> Figure {
    let wave = (0..2000).map(|i| (f64::from(i) / 20.0, (f64::from(i) / 50.0).sin()));
    let first = Panel::new("Waves & <others>")
        .x(Axis::new("time").unit("s"))
        .y(Axis::new("\"height\"").unit("m"))
        .series(Series::line("sin", wave.clone()))
        .series(Series::steps("steps", wave.clone().step_by(100)).dash(Dash::Dotted))
        .series(Series::points("points", wave.clone().step_by(77)).marker(Marker::Star))
        .hline(0.5, "half")
        .vline(30.0, "now")
        .region(10.0, 20.0, "then");
    let second = Panel::new("Range")
        .x(Axis::new("time").log10())
        .series(
            Series::line("mean", wave.clone().skip(1))
                .with_band(wave.skip(1).map(|(x, y)| (x, y - 0.2, y + 0.3))),
        )
        .legend(Legend::Inside);
    Figure::new("A & B").subtitle("a < b").caption("'quoted'").columns(2).panel(first).panel(second)
}

fn degenerate() -> Vec<Figure> {
    let nan = f64::NAN;
    let sets: [Vec<(f64, f64)>; 9] = [
        vec![],
        vec![(1.0, 1.0)],
        vec![(5.0, 3.0); 50],
        vec![(nan, nan), (1.0, nan), (f64::INFINITY, 2.0), (2.0, f64::NEG_INFINITY)],
        vec![(0.0, -1.7e308), (1.7e308, 1.7e308), (-1.7e308, 0.0)],
        vec![(1e-300, 1e-308), (2e-300, 5e-324)],
        vec![(1e16, 1e16), (1e16 + 2.0, 1e16 + 4.0)],
        vec![(0.0, 0.0), (-1.0, -5.0)],
        (0..5000).map(|i| (f64::from(i % 7), if i % 3 == 0 { nan } else { f64::from(i) })).collect(),
    ];
    let mut figures = vec![Figure::new(""), Figure::new("\u{0}\u{1b}\u{fffe}").panel(Panel::new("\u{7}"))];
    for points in sets {
        let band: Vec<_> = points.iter().map(|p| (p.0, p.1 - 1.0, p.1 + 1.0)).collect();
        for log in [false, true] {
            let axis = || if log { Axis::new("v").log10() } else { Axis::new("v") };
            let panel = Panel::new("degenerate")
                .x(axis())
                .y(axis())
                .series(Series::line("line", points.clone()).with_band(band.clone()))
                .series(Series::line_points("both", points.clone()))
                .series(Series::steps("steps", points.clone()))
                .series(Series::band("band", band.clone()))
                .hline(nan, "nowhere")
                .vline(f64::INFINITY, "far")
                .region(nan, 1.0, "from nowhere");
            figures.push(Figure::new("degenerate").panel(panel.clone()).panel(panel.legend(Legend::Inside)));
        }
    }
    figures
}

#[test]
fn svg_is_well_formed_and_escaped() {
    let svg = two_panels().to_svg();
    let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
    let texts: Vec<&str> =
        document.descendants().filter(|n| n.has_tag_name("text")).filter_map(|n| n.text()).collect();
    for wanted in [
        "A & B",
        "a < b",
        "'quoted'",
        "Waves & <others>",
        "\"height\" (m)",
        "time (s)",
        "half",
        "now",
        "then",
    ] {
        assert!(texts.contains(&wanted), "{wanted} is missing");
    }
    assert!(
        document
            .descendants()
            .all(|n| n.attributes().all(|a| !a.value().contains("NaN") && !a.value().contains("inf")))
    );
}

#[test]
fn svg_of_degenerate_data_is_well_formed() {
    for figure in degenerate() {
        let svg = figure.to_svg();
        let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
        for node in document.descendants().filter(|n| n.is_element()) {
            let bad = |v: &str| v.contains("NaN") || v.contains("inf");
            assert!(node.attributes().all(|a| a.name() == "aria-label" || !bad(a.value())), "{node:?}");
        }
    }
}

#[test]
fn long_series_make_short_pictures() {
    let points = (0..1_000_000u32).map(|i| (f64::from(i), f64::from(i.wrapping_mul(2_654_435_761) >> 8)));
    let svg = Figure::new("").panel(Panel::new("").series(Series::line("", points))).to_svg();
    assert!(svg.len() < 120_000, "{} bytes", svg.len());
}

/// Width, height and the pixels as red, green, blue.
fn decode(png: &[u8]) -> (u32, u32, Vec<[u8; 3]>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG header");
    let mut data = vec![0; reader.output_buffer_size().expect("a size that fits")];
    let info = reader.next_frame(&mut data).expect("a PNG picture");
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width, info.height, data.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect())
}

fn svg_size(svg: &str) -> (f64, f64) {
    let document = roxmltree::Document::parse(svg).expect("well-formed XML");
    let side = |name| document.root_element().attribute(name).and_then(|v| v.parse().ok()).expect("a number");
    (side("width"), side("height"))
}

#[test]
fn png_has_the_size_of_the_svg_and_the_colours_of_the_series() {
    let figure = two_panels();
    let (w, h) = svg_size(&figure.to_svg());
    for scale in [1.0, 2.0] {
        let (width, height, pixels) = decode(&figure.to_png(scale).expect("a picture"));
        assert_eq!((f64::from(width), f64::from(height)), ((w * scale).round(), (h * scale).round()));
        let count = |colour| pixels.iter().filter(|p| **p == colour).count();
        assert!(count([255, 255, 255]) > pixels.len() / 2, "the paper is white");
        assert!(count([0x00, 0x72, 0xb2]) > 200, "the first series");
        assert!(count([0x1d, 0x23, 0x2b]) > 50, "text in ink");
    }
}

#[test]
fn png_of_degenerate_data_is_a_picture() {
    for figure in degenerate() {
        let (width, height, _) = decode(&figure.to_png(0.5).expect("a picture"));
        assert!(width >= 100 && height >= 10);
    }
}

#[test]
fn impossible_pictures_are_refused() {
    let figure = two_panels();
    for scale in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(figure.to_png(scale), Err(PngError::Scale(scale)));
    }
    assert!(matches!(figure.to_png(f64::NAN), Err(PngError::Scale(_))));
    assert!(matches!(figure.to_png(100.0), Err(PngError::TooLarge(..))));
}

#[test]
fn nan_breaks_the_line() {
    let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 2.0), (4.0, 1.0)];
    let svg = Figure::new("").panel(Panel::new("").series(Series::line("a", points))).to_svg();
    let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
    let line = document.descendants().find(|n| n.attribute("stroke") == Some("#0072b2")).expect("the series");
    assert_eq!(line.attribute("d").map(|d| d.matches('M').count()), Some(2));
}

#[test]
fn a_panel_without_data_says_so_and_makes_up_no_ticks() {
    let drawn = |y: f64| {
        let panel = Panel::new("").series(Series::line("a", [(0.0, y), (1.0, y)]));
        Figure::new("").panel(panel).to_svg()
    };
    assert!(drawn(f64::NAN).contains("nothing measured") && !drawn(f64::NAN).contains(">0.5<"));
    assert!(!drawn(3.0).contains("nothing measured") && drawn(3.0).contains(">0.5<"));
    assert!(
        !Figure::new("").panel(Panel::new("")).to_svg().contains("nothing measured"),
        "nothing was asked for"
    );
}

#[test]
fn figures_in_a_page_follow_its_colours() {
    let page = Report::new("t").section(Section::new("s").figure(&two_panels())).to_html();
    assert!(page.contains("stroke:var(--p-s0,#0072b2)"));
    let svg = &page[page.find("<svg").expect("a figure")..page.find("</svg>").expect("its end") + 6];
    roxmltree::Document::parse(svg).expect("well-formed XML within the page");
}
