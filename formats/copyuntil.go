package formats

import (
	"io"
	"time"
)

// Sizes of CopyUntil: of a piece, and how often it asks whether to stop.
const (
	copyPiece = 64 << 10
	copyLook  = 50 * time.Millisecond
)

// CopyUntil copies a stream that may stand still for as long as its writer
// likes, such as a terminal. It ends with ErrInterrupted soon after interrupted
// says so; a read that is still waiting then is left behind.
func CopyUntil(dst io.Writer, src io.Reader, interrupted func() bool) error {
	if interrupted == nil {
		_, err := io.Copy(dst, src)
		return err
	}
	c := copier{pieces: make(chan []byte), back: make(chan []byte, 1), end: make(chan error, 1), stop: make(chan struct{})}
	defer close(c.stop)
	c.back <- make([]byte, copyPiece)
	go c.read(src)
	look := time.NewTicker(copyLook)
	defer look.Stop()
	for {
		select {
		case piece := <-c.pieces:
			if _, err := dst.Write(piece); err != nil {
				return err
			}
			c.back <- piece[:copyPiece]
		case err := <-c.end:
			return err
		case <-look.C:
			if interrupted() {
				return ErrInterrupted
			}
		}
	}
}

// copier is the reading half of CopyUntil.
type copier struct {
	// pieces are what was read; each comes back before the next read.
	pieces, back chan []byte
	// end is how the stream ended, nil for well.
	end  chan error
	stop chan struct{}
}

func (c *copier) read(src io.Reader) {
	for {
		var buf []byte
		select {
		case buf = <-c.back:
		case <-c.stop:
			return
		}
		n, err := src.Read(buf)
		if n > 0 {
			select {
			case c.pieces <- buf[:n]:
			case <-c.stop:
				return
			}
		}
		if err == io.EOF {
			c.end <- nil
			return
		}
		if err != nil {
			c.end <- err
			return
		}
		if n == 0 {
			c.back <- buf
		}
	}
}
