//! A body in pieces, read as one.

use std::io::{self, Read};

/// Reads pieces one after the other.
#[derive(Debug)]
pub(crate) struct Pieces<'a, I> {
    pieces: I,
    piece: &'a [u8],
}

impl<'a, I: Iterator<Item = &'a [u8]>> Pieces<'a, I> {
    pub(crate) fn new(pieces: I) -> Self {
        Self { pieces, piece: &[] }
    }
}

impl<'a, I: Iterator<Item = &'a [u8]>> Read for Pieces<'a, I> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.next() {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        self.piece.read(into)
    }
}
