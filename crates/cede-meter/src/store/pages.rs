//! Values by number, in pages, so that growing moves nothing.

/// Values in pages of `N`.
#[derive(Debug)]
pub(crate) struct Pages<T, const N: usize>(Vec<Vec<T>>);

impl<T, const N: usize> Default for Pages<T, N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T, const N: usize> Pages<T, N> {
    pub(crate) fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * N + last.len())
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.0[index as usize / N][index as usize % N]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.0[index as usize / N][index as usize % N]
    }

    /// Adds a value; its number.
    pub(crate) fn push(&mut self, value: T) -> u32 {
        if self.0.last().is_none_or(|page| page.len() == N) {
            self.0.push(Vec::with_capacity(N));
        }
        let pages = self.0.len();
        let page = &mut self.0[pages - 1];
        page.push(value);
        ((pages - 1) * N + page.len() - 1) as u32
    }

    /// Takes a value out; the last one gets its number.
    pub(crate) fn swap_remove(&mut self, index: u32) -> T {
        let last = self.0.last_mut().and_then(Vec::pop).expect("there is a value to take out");
        if self.0.last().is_some_and(Vec::is_empty) {
            self.0.pop();
        }
        if index as usize == self.len() { last } else { core::mem::replace(self.get_mut(index), last) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().flatten()
    }

    /// Takes all values out, page by page.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = T> + use<T, N> {
        core::mem::take(self).0.into_iter().flatten()
    }

    /// Forgets all values; the memory of the first page stays.
    pub(crate) fn clear(&mut self) {
        self.0.truncate(1);
        self.0.iter_mut().for_each(Vec::clear);
    }
}
