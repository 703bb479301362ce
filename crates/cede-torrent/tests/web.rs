//! Web seeds: from honest servers everything comes, in few requests; what dishonest and broken ones send does no harm, and what is
//! wrong with them is said.

#[path = "support/http.rs"]
mod http;
mod support;

use cede_bt::metainfo::{File, Info, Writer, sha1};
use cede_torrent::fetch::{Download, download};
use cede_torrent::origin::Origin;
use cede_torrent::session::Choices;
use cede_torrent::storage::Storage;
use cede_torrent::web::WebNote;
use http::{Answer, Request, Server, honest};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{
    LIMIT, Member, PIECE, Scratch, choices, octets, padded_torrent, run, torrent, torrent_in, torrent_v2,
};
use tokio::sync::mpsc::UnboundedReceiver;

/// The files of a torrent as a server has them below `/d/`.
fn files_of(info: &Info, content: &[u8]) -> HashMap<String, Vec<u8>> {
    let real = info.files.iter().filter(|file| !file.is_padding);
    let place = |file: &File| file.offset as usize..(file.offset + file.length) as usize;
    real.map(|file| (format!("/d/{}", file.path.join("/")), content[place(file)].to_vec())).collect()
}

/// One that fetches from these, and what it says of them.
async fn leech(info: &Arc<Info>, wanted: &[bool], urls: &[String]) -> (Member, UnboundedReceiver<WebNote>) {
    leech_with(info, wanted, urls, choices(2, 5)).await
}

async fn leech_with(
    info: &Arc<Info>,
    wanted: &[bool],
    urls: &[String],
    choices: Choices,
) -> (Member, UnboundedReceiver<WebNote>) {
    let mut leech = Member::new(info, None, wanted, choices).await;
    leech.start();
    leech.session.want_files();
    let notes = leech.session.use_web_seeds(urls);
    (leech, notes)
}

/// What is said next.
async fn trouble(notes: &mut UnboundedReceiver<WebNote>) -> String {
    loop {
        let note = tokio::time::timeout(LIMIT, notes.recv()).await.expect("nothing is said").unwrap();
        if let Some(trouble) = note.trouble {
            return trouble;
        }
    }
}

#[test]
fn everything_comes_in_few_requests_over_one_connection() {
    run(async {
        let (info, content) = torrent_in(&[3_000_000, 0, 5, 40_000], 1 << 16);
        let server = Server::of(files_of(&info, &content));
        let (leech, _) = leech(&info, &[], &[server.url("/d")]).await;
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
        let view = leech.session.view();
        assert_eq!((view.totals.downloaded_web, view.totals.redundant), (content.len() as u64, 0));
        let requests = server.requests();
        assert!(requests.len() <= 8, "{requests:#?}");
        assert!(requests.iter().all(|request| request.connection == 0));
    });
}

#[test]
fn a_file_alone_is_behind_the_url_or_in_its_folder() {
    run(async {
        let content = octets(100_000, 3);
        let file = File {
            path: vec!["a film".to_owned()],
            length: 100_000,
            offset: 0,
            is_padding: false,
            is_executable: false,
        };
        let pieces = content.chunks(PIECE).flat_map(sha1).collect();
        let (name, files) = ("a film".into(), vec![file]);
        let writer = Writer { name, piece_length: PIECE as u32, pieces, files, ..Writer::default() };
        let info = Arc::new(Info::parse(&writer.info().encode()).unwrap());
        let names = ["/other%20name", "/d/a%20film"];
        let files: HashMap<_, _> = names.map(|name| (name.to_owned(), content.clone())).into();
        let server = Server::of(files);
        for path in ["/other%20name", "/other name", "/d/"] {
            let (leech, _) = leech(&info, &[], &[server.url(path)]).await;
            leech.done().await;
            assert_eq!(leech.content(content.len()), content, "{path}");
        }
    });
}

#[test]
fn peers_and_servers_share_the_work() {
    run(async {
        let (info, content) = torrent_in(&[4_000_000], 1 << 16);
        let server = Server::of(files_of(&info, &content));
        let limited = Choices { upload_limit: Some(1_000_000), ..choices(1, 5) };
        let mut seed = Member::new(&info, Some(&content), &[], limited).await;
        seed.start();
        let slow = Choices { download_limit: Some(3_000_000), ..choices(2, 5) };
        let (leech, _) = leech_with(&info, &[], &[server.url("/d/")], slow).await;
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
        let totals = leech.session.view().totals;
        assert!(totals.downloaded_web > 0 && totals.downloaded[0] > 0, "{totals:?}");
        // The last pieces may come from both.
        assert!(totals.redundant + totals.cut < 600_000, "{totals:?}");
    });
}

#[test]
fn padding_is_not_asked_for_and_files_of_v2_come() {
    run(async {
        let (metainfo, content) = torrent_v2(&[PIECE, 5, 0, 3 * PIECE + 7, 2 * PIECE]);
        let info = Arc::new(metainfo.info);
        let server = Server::of(files_of(&info, &content));
        let (leech, _) = leech(&info, &[], &[server.url("/d/")]).await;
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
        assert_eq!(leech.session.view().totals.downloaded_web, 6 * PIECE as u64 + 12);
    });
    run(async {
        // v1, as others make it: padding that is part of pieces.
        let lengths = [(30_000, false), (2_768, true), (40_000, false)];
        let (info, content) = padded_torrent(&lengths, PIECE);
        let server = Server::of(files_of(&info, &content));
        let (leech, _) = leech(&info, &[], &[server.url("/d/")]).await;
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
        assert_eq!(leech.session.view().totals.downloaded_web, 70_000);
        assert!(server.requests().iter().all(|request| request.path != "/d/t/f1"));
    });
}

#[test]
fn of_files_that_are_not_wanted_only_the_ends_of_pieces_are_asked_for() {
    run(async {
        let (info, content) = torrent(&[100_000, 100_000, 100_000]);
        let server = Server::of(files_of(&info, &content));
        let (leech, _) = leech(&info, &[false, true, false], &[server.url("/d/")]).await;
        leech.done().await;
        assert_eq!(std::fs::read(leech.storage.path_of(1)).unwrap(), content[100_000..200_000]);
        let pieces = leech.session.whole().iter().filter(|is_whole| **is_whole).count();
        assert_eq!(leech.session.view().totals.downloaded_web, (pieces * PIECE) as u64);
    });
}

#[test]
fn a_limit_holds_for_servers_too() {
    run(async {
        let (info, content) = torrent(&[400_000]);
        let server = Server::of(files_of(&info, &content));
        let began = std::time::Instant::now();
        let limited = Choices { download_limit: Some(200_000), ..choices(2, 5) };
        let (leech, _) = leech_with(&info, &[], &[server.url("/d/")], limited).await;
        leech.done().await;
        assert!(began.elapsed().as_secs_f64() > (400_000.0 - 70_000.0) / 200_000.0 * 0.9);
    });
}

/// Redirections are followed a few times; connections to both servers are kept.
#[test]
fn servers_send_on() {
    run(async {
        let (info, content) = torrent(&[300_000]);
        let server = Server::of(files_of(&info, &content));
        let place = server.url("/d/t/f0");
        let front = Server::start(move |request| match request.path.as_str() {
            "/loop/t/f0" => Answer::new("302 Found", "Location: /loop/t/f0\r\n", b""),
            "/file/t/f0" => Answer::new("302 Found", "Location: file:///etc/passwd\r\n", b""),
            _ => Answer::new("302 Found", &format!("Location: {place}\r\n"), b"moved"),
        });
        let (there, _) = leech(&info, &[], &[front.url("/d/")]).await;
        there.done().await;
        assert_eq!(there.content(content.len()), content);
        let (_there, mut notes) = leech(&info, &[], &[front.url("/loop/"), front.url("/file/")]).await;
        let mut said = [trouble(&mut notes).await, trouble(&mut notes).await];
        said.sort();
        assert!(
            said[0].contains("more than 5 times") && said[1].contains("neither http nor https"),
            "{said:?}"
        );
        assert!(front.requests().iter().filter(|request| request.path.starts_with("/loop")).count() <= 6);
    });
}

/// A server that does not know ranges gives whole files, also where their beginnings are not asked for first.
#[test]
fn who_sends_whole_files_is_used() {
    run(async {
        let (info, content) = torrent_in(&[5_000_000, 100_000, 3_000_000], 1 << 16);
        let files = files_of(&info, &content);
        let server = Server::start(move |request| match files.get(&request.path) {
            Some(content) => honest(content, &Request { range: None, ..request.clone() }),
            None => Answer::status("404 Not Found"),
        });
        let (leech, _) = leech(&info, &[], &[server.url("/d/")]).await;
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
        assert!(server.requests().len() <= 12, "{:#?}", server.requests());
    });
}

/// What was interrupted goes on, though all of a file comes again for the little that is missing: at once where there is nobody
/// else, and where a peer does not have it either, a while later.
#[test]
fn the_rest_of_a_file_comes_from_who_sends_whole_files() {
    run(async {
        let (info, content) = torrent_in(&[4_000_000], 1 << 16);
        let files = files_of(&info, &content);
        let server = Server::start(move |request| {
            honest(&files[&request.path], &Request { range: None, ..request.clone() })
        });
        let whole: Vec<bool> = (0..info.piece_count()).map(|piece| piece % 16 > 0).collect();
        for has_peer in [false, true] {
            let began = Instant::now();
            let mut idle = Member::new(&info, None, &[], choices(1, 5)).await;
            idle.start();
            let scratch = Scratch::new();
            let storage = Arc::new(Storage::new(&scratch.0, &info, &[]).unwrap());
            for (at, piece) in content.chunks(1 << 16).enumerate().filter(|(at, _)| whole[*at]) {
                storage.write((at << 16) as u64, piece).unwrap();
            }
            let mut leech = Member::resumed(&info, &storage, &whole, choices(2, 5)).await;
            leech.start();
            if has_peer {
                leech.session.add_peers(&[idle.address]);
                while leech.session.view().peers.is_empty() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
            let _notes = leech.session.use_web_seeds(&[server.url("/d/")]);
            leech.done().await;
            assert_eq!(began.elapsed() > Duration::from_secs(10), has_peer);
            let mut read = vec![0; content.len()];
            storage.read(0, &mut read).unwrap();
            assert_eq!(read, content);
        }
        assert!(server.requests().len() <= 4, "{:#?}", server.requests());
    });
}

/// Where one server is good for nothing, the next is asked. `wrong` is what the first does, `word` what is said of it.
async fn other_after(wrong: impl Fn(&[u8], &Request) -> Answer + Send + Sync + 'static, word: &str) {
    let (info, content) = torrent(&[200_000]);
    let whole = content.clone();
    let server = Server::start(move |request| wrong(&whole, request));
    let good = Server::of(files_of(&info, &content));
    let (leech, mut notes) = leech(&info, &[], &[server.url("/d/")]).await;
    let said = trouble(&mut notes).await;
    assert!(said.contains(word), "{word}: {said}");
    let _more = leech.session.use_web_seeds(&[good.url("/d/")]);
    leech.done().await;
    assert_eq!(leech.content(content.len()), content, "{word}");
    assert!(server.requests().len() < 30, "{word}");
}

#[test]
fn answers_that_are_not_what_was_asked_for_are_refused() {
    run(async {
        other_after(|_, _| Answer::status("404 Not Found"), "404").await;
        other_after(|_, _| Answer::status("403 Forbidden"), "403").await;
        other_after(|_, _| Answer::status("416 Range Not Satisfiable"), "416").await;
        let unsatisfied = "Content-Range: bytes */7\r\n";
        other_after(move |_, _| Answer::new("416 Range Not Satisfiable", unsatisfied, b""), "has 7 octets")
            .await;
        other_after(|_, _| Answer::status("503 Service Unavailable"), "503").await;
        other_after(|_, _| Answer::new("200 OK", "", b"<html>not found</html>"), "has 22 octets").await;
        other_after(|_, _| Answer::new("206 Partial Content", "", &[0; 100]), "Content-Range").await;
        let longer = |content: &[u8], request: &Request| honest(&[content, b"x"].concat(), request);
        other_after(longer, "has 200001 octets").await;
        let shifted = |content: &[u8], request: &Request| {
            let range = request.range.clone().unwrap();
            let told = format!("Content-Range: bytes {}-{}/200000\r\n", range.start + 1, range.end);
            Answer::new("206 Partial Content", &told, &content[range])
        };
        other_after(shifted, "another part").await;
        let crumbs = |content: &[u8], request: &Request| {
            let first = request.range.clone().unwrap().start;
            let told = format!("Content-Range: bytes {first}-{first}/200000\r\n");
            Answer::new("206 Partial Content", &told, &content[first..=first])
        };
        other_after(crumbs, "another part").await;
        let compressed = |content: &[u8], request: &Request| {
            let answer = honest(content, request);
            Answer { head: answer.head + "Content-Encoding: br\r\n", ..answer }
        };
        other_after(compressed, "another form").await;
        other_after(|_, _| Answer { stays: Some(Duration::ZERO), ..Answer::new("", "", b"") }, "").await;
    });
}

/// What is asked for lies within the file: a server that denies it has no opinion of the file, and is asked again.
#[test]
fn a_server_that_finds_a_range_beyond_the_end_for_once_is_asked_again() {
    run(async {
        let (info, content) = torrent(&[200_000]);
        let whole = content.clone();
        let server = Server::start(move |request| match request.number {
            0 => Answer::new("416 Range Not Satisfiable", "Content-Range: bytes */200000\r\n", b""),
            _ => honest(&whole, request),
        });
        let (leech, mut notes) = leech(&info, &[], &[server.url("/d/")]).await;
        assert!(trouble(&mut notes).await.contains("416"));
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
    });
}

#[test]
fn a_server_that_sends_something_else_is_not_used_again() {
    run(async {
        let lying = |content: &[u8], request: &Request| {
            let mut other = content.to_vec();
            other.iter_mut().for_each(|octet| *octet ^= 1);
            honest(&other, request)
        };
        other_after(lying, "not the torrent's").await;
    });
}

/// What never ends is not read to its end, what ends too soon is asked for again from there on, and who falls silent keeps nobody.
#[test]
fn bodies_end_where_they_should() {
    run(async {
        let (info, content) = torrent(&[200_000]);
        let whole = content.clone();
        let endless = Server::start(move |request| {
            let mut answer = honest(&whole, request);
            answer.head = answer
                .head
                .lines()
                .filter(|line| !line.starts_with("Content-Length"))
                .fold(String::new(), |head, line| head + line + "\r\n");
            Answer { is_endless: true, ..answer }
        });
        let (there, _) = leech(&info, &[], &[endless.url("/d/")]).await;
        there.done().await;
        assert_eq!(there.content(content.len()), content);
        let whole = content.clone();
        let short = Server::start(move |request| {
            let answer = honest(&whole, request);
            let half = answer.body.len().div_ceil(2);
            Answer { body: answer.body[..half].to_vec(), stays: Some(Duration::ZERO), ..answer }
        });
        let (there, mut notes) = leech(&info, &[], &[short.url("/d/")]).await;
        assert_eq!(trouble(&mut notes).await, "the server ends before it has sent what it was asked for");
        let came = there.session.view().totals.downloaded_web;
        assert!((50_000..200_000).contains(&came), "{came}");
    });
}

/// Some servers send only so much at a time and hang up: what is left is asked for at once, as long as there is progress. One that begins
/// at the beginning each time makes none.
#[test]
fn answers_that_are_cut_are_gone_on_with() {
    run(async {
        let (info, content) = torrent_in(&[3_000_000], 1 << 16);
        let cut = |answer: Answer| {
            let body = answer.body[..answer.body.len().min(300_000)].to_vec();
            let is_cut = body.len() < answer.body.len();
            Answer { body, stays: is_cut.then_some(Duration::ZERO), ..answer }
        };
        let whole = content.clone();
        let short = Server::start(move |request| cut(honest(&whole, request)));
        let (there, mut notes) = leech(&info, &[], &[short.url("/d/")]).await;
        there.done().await;
        assert_eq!(there.content(content.len()), content);
        assert!(notes.try_recv().is_err(), "nothing is wrong with it");

        let whole = content.clone();
        let again = move |request: &Request| cut(honest(&whole, &Request { range: None, ..request.clone() }));
        let again = Server::start(again);
        let (there, mut notes) = leech(&info, &[], &[again.url("/d/")]).await;
        assert_eq!(trouble(&mut notes).await, "the server ends before it has sent what it was asked for");
        assert!(again.requests().len() <= 4, "{}", again.requests().len());
        assert_eq!(there.session.view().pieces, 4);
    });
}

#[test]
fn who_falls_silent_keeps_nobody_from_the_rest() {
    run(async {
        let (info, content) = torrent(&[200_000]);
        let whole = content.clone();
        let silent = Server::start(move |request| {
            let answer = honest(&whole, request);
            Answer { body: answer.body[..1000].to_vec(), stays: Some(LIMIT), ..answer }
        });
        let (leech, _notes) = leech(&info, &[], &[silent.url("/d/")]).await;
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        seed.start();
        while silent.requests().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let began = std::time::Instant::now();
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
        assert!(began.elapsed() < Duration::from_secs(15), "the peer has it all");
        assert_eq!(leech.content(content.len()), content);
    });
}

/// Other files of a server that lacks one are fetched from it all the same.
#[test]
fn a_file_that_is_not_there_is_one_of_many() {
    run(async {
        let (info, content) = torrent(&[4 * PIECE, 4 * PIECE, 4 * PIECE]);
        let mut files = files_of(&info, &content);
        files.remove("/d/t/f1");
        let server = Server::of(files);
        let (leech, mut notes) = leech(&info, &[], &[server.url("/d/")]).await;
        let mut seed = Member::new(&info, Some(&content), &[], choices(1, 5)).await;
        seed.start();
        assert!(trouble(&mut notes).await.contains("404"));
        while leech.session.view().pieces < 8 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        leech.session.add_peers(&[seed.address]);
        leech.done().await;
        assert_eq!(leech.content(content.len()), content);
    });
}

/// A server that sends less at a time than it is asked for is asked for the rest; one that has nothing of many files is soon left.
#[test]
fn halves_are_taken_and_refusals_counted() {
    run(async {
        let (info, content) = torrent_in(&[3_000_000], 1 << 16);
        let whole = content.clone();
        let server = Server::start(move |request| {
            let range = request.range.clone().map(|range| range.start..range.end.min(range.start + 100_000));
            honest(&whole, &Request { range, ..request.clone() })
        });
        let (there, _) = leech(&info, &[], &[server.url("/d/")]).await;
        there.done().await;
        assert_eq!(there.content(content.len()), content);

        let (info, _) = torrent(&[PIECE; 200]);
        let empty = Server::start(|_| Answer::status("404 Not Found"));
        let (_there, mut notes) = leech(&info, &[], &[empty.url("/d/")]).await;
        while !trouble(&mut notes).await.contains("not used any more") {}
        assert!(empty.requests().len() < 100, "{}", empty.requests().len());
    });
}

/// What a torrent names may be a place at home where a request does something.
#[test]
fn servers_at_home_are_asked_for_files_and_nothing_else() {
    run(async {
        let (info, content) = torrent(&[100_000]);
        let server = Server::of(files_of(&info, &content));
        let urls = [server.url("/reboot?now="), "ftp://127.0.0.1/d/".to_owned(), "no url".to_owned()];
        let (leech, mut notes) = leech(&info, &[], &urls).await;
        let said =
            [trouble(&mut notes).await, trouble(&mut notes).await, trouble(&mut notes).await].join("; ");
        assert!(said.contains("with a query") && said.contains("neither http nor https"), "{said}");
        assert!(server.requests().is_empty() && leech.session.view().web_seeds.is_empty());
    });
}

/// A server that is busy is asked again when it says, and not sooner.
#[test]
fn a_server_that_is_busy_is_asked_again() {
    run(async {
        let (info, content) = torrent(&[100_000]);
        let whole = content.clone();
        let server = Server::start(move |request| match request.number {
            0 => Answer::new("503 Service Unavailable", "Retry-After: 6\r\n", b""),
            _ => honest(&whole, request),
        });
        let began = std::time::Instant::now();
        let (leech, mut notes) = leech(&info, &[], &[server.url("/d/")]).await;
        assert!(trouble(&mut notes).await.contains("503"));
        leech.done().await;
        assert!(began.elapsed() >= Duration::from_secs(6));
        assert_eq!(leech.content(content.len()), content);
    });
}

/// What stands in a URL in front of its host is what a server asks for, once its percent-encoding is undone. Nobody else hears it.
#[test]
fn a_name_and_a_password_are_told_to_who_they_are_for() {
    run(async {
        let (info, content) = torrent(&[300_000]);
        let (files, torrent) = (files_of(&info, &content), info.raw.clone());
        let elsewhere = Server::of([("/torrent".to_owned(), info.raw.to_vec())].into());
        let onward = format!("Location: {}\r\n", elsewhere.url("/torrent"));
        let server = Server::start(move |request| match (request.authorization.as_deref(), &*request.path) {
            // `us er:p@s:s`, by Python's `base64.b64encode`.
            (Some("Basic dXMgZXI6cEBzOnM="), "/torrent") => honest(&torrent, request),
            (Some("Basic dXMgZXI6cEBzOnM="), "/moved") => Answer::new("302 Found", &onward, b""),
            (Some("Basic dXMgZXI6cEBzOnM="), path) => honest(&files[path], request),
            _ => Answer::status("401 Unauthorized"),
        });
        let url = |path: &str| format!("http://us%20er:p%40s%3as@{}{path}", server.address);
        for path in ["/torrent", "/moved"] {
            let fetched = download(&url(path), Origin::default()).await;
            assert_eq!(fetched, Ok(Download::Octets(info.raw.to_vec())), "{path}");
        }
        assert_eq!(elsewhere.requests()[0].authorization, None);
        let (there, _) = leech(&info, &[], &[url("/d/")]).await;
        there.done().await;
        assert_eq!(there.content(content.len()), content);
        let refused = download("http://127.0.0.1:99999/torrent", Origin::default()).await;
        assert_eq!(refused, Err("that is no URL that can be asked".to_owned()));
    });
}
