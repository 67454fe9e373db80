package record

// MaxRequestBytes is what one request may hold: see Request.Size.
const MaxRequestBytes = maxRecordBytes

// Size is what the request's body, blocks and strings take, in bytes. Beyond
// MaxRequestBytes no container holds it.
func (r *Request) Size() int { return requestBytes(r) }
