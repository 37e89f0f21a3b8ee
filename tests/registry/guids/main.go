// A schema registry that knows schemas by GUID, in memory: franz-go's. Prints its URL, and ends with its input.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

func main() {
	registry := srfake.New()
	defer registry.Close()
	fmt.Println(registry.URL())
	io.Copy(io.Discard, os.Stdin)
}
