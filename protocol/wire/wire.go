// Package wire sends one HTTP request per attempt and tells the truth about
// what may have left (I14).
package wire
