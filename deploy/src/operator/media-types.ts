/** Of answers with progress: lines of JSON. */
export const LINES = 'application/x-ndjson'
/** Of request bodies. A web page cannot send it to another site without asking first. */
export const OCTETS = 'application/octet-stream'
