package metric

// The groups, in the order of a board.
const (
	host     group = "Host"
	calls    group = "Calls"
	alarms   group = "Alarms and messages"
	recovery group = "Recovery"
	work     group = "Jobs"
	tasks    group = "Tasks"
	disk     group = "Disk"
	web      group = "HTTP"
	backups  group = "Backups"
)

// The metrics of a host.
var (
	Up     = host.gauge("up", "1, and 0 once the host has ended, by an error of the store or by Shutdown.")
	Opened = host.gauge("opened_timestamp_seconds", "When the host was opened, in seconds since 1970.")
	Busy   = host.gauge("busy", "Calls, routines and hooks under way.")
	Live   = host.gauge("objects_live", "Objects in memory.", "class")

	Labelled  = host.gauge("objects_labelled", "Stored objects by class and label; a job's label is its status. Missing until all are counted after an Open.", "class", "label")
	Evictions = host.counter("evictions_total", "Idle objects that left memory.", "class")

	Turns           = calls.counter("turns_total", "Turns by class and outcome (done, failed, panicked).", "class", "outcome")
	CallsWaiting    = calls.gauge("calls_waiting", "Calls in mailboxes.", "class")
	CallsWaitingAge = calls.gauge("calls_waiting_age_seconds", "How long the oldest call in a mailbox has waited.", "class")
	CallsOverloaded = calls.counter("calls_overloaded_total", "Calls refused with ErrOverloaded, because the object's mailbox was full or its oldest call had waited too long.", "class")
	TurnsStuck      = calls.counter("turns_stuck_total", "Turns that held their object longer than the class's HoldLimit.", "class")
	GateSeconds     = calls.histogram("gate_seconds", "Time that replies waited until the commits they depend on were durable.")

	AlarmLag        = alarms.histogram("alarm_lag_seconds", "How late alarms reached their handlers.")
	AlarmRetries    = alarms.counter("alarm_retries_total", "Failed alarm attempts that are followed by another.", "class")
	AlarmsHeld      = alarms.gauge("alarms_held", "Alarms in the scheduler's memory.")
	AlarmsInFlight  = alarms.gauge("alarms_in_flight", "Alarms under way: the handler runs, or its commit is not yet durable.")
	DeadLetters     = alarms.counter("dead_letters_total", "Dead letters that were stored, of alarms, messages and jobs.", "class")
	Messages        = alarms.counter("messages_total", "Messages by the class of the receiver and by outcome: delivered, retried (an attempt failed) or dead.", "class", "outcome")
	MessagesWaiting = alarms.gauge("messages_waiting", "Messages on disk whose receivers have more than they handle at once, or are paused.")
	ReceiversPaused = alarms.gauge("message_receivers_paused", "Objects whose messages wait, because one could not be handled for a reason that is not its handler's.")
	MessagesUnder   = alarms.gauge("messages_under_way", "Messages that are in mailboxes or being handled, but for those that are tried again.")
	MessagesStored  = alarms.gauge("messages_stored", "Messages in the store. Missing until all are counted after an Open.")

	Recoveries   = recovery.counter("recoveries_total", "Executions, alarms and messages that were recovered, by cause and by the next step (action).", "class", "cause", "action")
	StaleSeconds = recovery.histogram("stale_seconds", "Time from when a lost execution began, or a missing alarm was due, until it was recovered.", "class")

	Executions     = work.counter("executions_total", "Executions of jobs that ended, by class and outcome.", "class", "outcome")
	WorksPermitted = work.gauge("works_permitted", "Runs and flushes that execute now, of a definition with Concurrency or StartRate.", "class")
	WorksWaiting   = work.gauge("works_waiting", "Runs and flushes that are due and wait, because Concurrency or StartRate allows no more.", "class")
	Repeats        = work.counter("repeats_total", "Executions of workflow functions that began with a history.", "class")
	EntriesRead    = work.counter("entries_read_total", "Entries of histories that these executions read.", "class")

	TasksPending  = tasks.gauge("tasks_pending", "Tasks that have not begun, or wait for another attempt.", "class")
	TasksRunning  = tasks.gauge("tasks_running", "Tasks that run.", "class")
	TasksDead     = tasks.gauge("tasks_dead", "Tasks that are dead letters.", "class")
	TasksReadyAge = tasks.gauge("tasks_ready_age_seconds", "How long the next task of any queue has been ready.", "class")
	TaskWait      = tasks.histogram("task_wait_seconds", "Time from when a task became ready until it began.", "class")
	TaskRun       = tasks.histogram("task_run_seconds", "Time that attempts at tasks took.", "class")

	CommitSeconds = disk.histogram("commit_seconds", "Time to apply a turn's batch, without the sync.")
	SyncSeconds   = disk.histogram("sync_seconds", "Time of one sync of the log, which serves all commits that wait.")
	SyncUnderWay  = disk.gauge("sync_under_way_seconds", "How long the sync that is under way has taken; 0: none is.")
	NotDurable    = disk.gauge("commits_not_durable", "Commits that are applied and not yet known to be durable.")
	StorageFree   = disk.gauge("storage_free_bytes", "Free space of the disk under the store. Missing if the store does not watch it.")
	StorageFloor  = disk.gauge("storage_floor_bytes", "Free space below which turns that write are refused (Storage.MinFreeBytes).")
)

// The metrics of the server, which a host without one does not have.
var (
	HTTPRequests  = web.counter("http_requests_total", "Answered requests by the pattern of the route, method and status. A request without a route has the route none.", "route", "method", "code")
	HTTPSeconds   = web.histogram("http_seconds", "Time from a request's begin to the end of its answer. Streams and long polls are left out, because they last as long as their clients want.", "route")
	Streams       = web.gauge("streams", "Streams of events and long polls that are open.")
	StreamDropped = web.counter("stream_dropped_total", "Streams that the server ended, or that lost events, by why: missed (the client fell behind, and got the state), slow, revoked, closing, failed.", "why")
)

// The metrics of a server with Config.Backups.
var (
	BackupVerified = backups.gauge("backup_last_verified_timestamp_seconds", "When the newest backup of the store that is verified was begun, in seconds since 1970; 0: there is none. Missing while the repository cannot be read.")
	BackupBytes    = backups.gauge("backup_last_bytes", "Size of that backup. The repository keeps what it shares with others once.")
	BackupSeconds  = backups.gauge("backup_last_seconds", "How long the newest backup took that this process has made, with its verification. Missing before the first.")
)

// OfServer reports whether the server counts the metric, and not the host.
func (m *Metric) OfServer() bool { return m.Group == string(web) || m.Group == string(backups) }
