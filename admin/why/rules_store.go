package why

import "fmt"

// storeRules are about the whole store. There are hostRules of them.
var storeRules = []rule{
	{code: StorageFailed, live: true, means: "the store has failed, and the host with it", do: []string{"mend the disk, or restore a backup", "open the store again"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: "The store has failed, so nothing runs in this process any more.", Error: f.store.failed}, f.store.failed != ""
		}},
	{code: Closing, live: true, means: "a shutdown has begun", do: []string{"wait for its end, and start the program again"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: "The host is shutting down."}, f.store.closing && f.store.failed == ""
		}},
	{code: Dormant, means: "the store is a restored copy that sleeps: nothing in it runs by itself", do: []string{"holdfast go, once the original is gone for good"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: "The store is a dormant copy, so nothing in it runs by itself."}, f.store.dormant
		}},
	{code: NotOpen, live: true, means: "no process has the store open", do: []string{"start the program that defines the class"},
		holds: func(f *facts) (Answer, bool) { return Answer{Text: notOpen(f)}, f.store.cold }},
	{code: NoSpace, live: true, means: "the disk has less free space than the store's floor, so nothing is stored", do: []string{"free some space: all goes on by itself within a second"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: "The disk is nearly full, so nothing can be stored.", Error: f.store.noSpace}, f.store.noSpace != ""
		}},
}

// notOpen tells how the last process ended.
func notOpen(f *facts) string {
	switch p := f.store.previous; {
	case p.Epoch == 0:
		return "No process has opened the store yet."
	case p.Clean:
		return "No process has the store open; the last one ended in order."
	case p.Crashes > 1:
		return fmt.Sprintf("No process has the store open; the last %d did not end in order.", p.Crashes)
	}
	return "No process has the store open; the last one did not end in order."
}
