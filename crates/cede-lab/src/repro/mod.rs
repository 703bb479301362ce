//! Papers whose experiments are run again, one module each.

pub mod bufferbloat;
pub mod lcn10;
pub mod ledbatpp;
pub mod rao10;
pub mod swarms;
pub mod tma12;

use crate::run::RunError;
use cede_plot::Figure;
use lcn10::Progress;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{fs, io};

/// A file that is to be written: its name and what is in it.
type File = (String, Vec<u8>);

/// A picture as SVG and as PNG.
fn drawn(name: &str, picture: &Figure) -> io::Result<[File; 2]> {
    let png = picture.to_png(2.0).map_err(io::Error::other)?;
    Ok([(format!("{name}.svg"), picture.to_svg().into_bytes()), (format!("{name}.png"), png)])
}

/// Writes files into a folder, which is made if it is not there, and answers with their paths in the same order.
fn write_all(folder: &Path, files: Vec<File>) -> io::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder)?;
    let write = |(name, content): File| {
        let path = folder.join(name);
        fs::write(&path, content).map(|()| path)
    };
    files.into_iter().map(write).collect()
}

/// Runs every setting, `jobs` at a time (at least one), and answers in the order of the settings. `hear` is called after
/// each; nothing starts once `stop` says so.
fn in_parallel<S: Sync, M: Send>(
    settings: &[S],
    jobs: usize,
    stop: &(dyn Fn() -> bool + Sync),
    hear: &(dyn Fn(Progress) + Sync),
    run: impl Fn(&S) -> Result<M, RunError> + Sync,
) -> Result<Vec<M>, RunError> {
    let measured: Mutex<Vec<Option<M>>> = Mutex::new(settings.iter().map(|_| None).collect());
    let error = Mutex::new(None);
    let (next, done, began) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    let work = || {
        while !stop() {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(setting) = settings.get(place) else { return };
            match run(setting) {
                Ok(one) => locked(&measured)[place] = Some(one),
                Err(why) => {
                    locked(&error).get_or_insert(why);
                    return;
                }
            }
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            hear(Progress::of(done, 0, settings.len(), began.elapsed()));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, settings.len().max(1)) {
            scope.spawn(work);
        }
    });
    let measured = std::mem::take(&mut *locked(&measured));
    let all = measured.into_iter().collect::<Option<Vec<M>>>();
    all.ok_or_else(|| locked(&error).take().unwrap_or(RunError::Interrupted))
}

/// What a thread that panicked has left is whole: every change is one assignment.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
