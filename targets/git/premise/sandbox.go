package premise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Limits bound a program that runs code of a repository.
type Limits struct {
	Time   time.Duration // real time, and CPU time in whole seconds; 0 is ten seconds
	Memory uint64        // bytes of address space; 0 is two gigabytes
	Output int           // bytes that are kept of what it prints; 0 is a megabyte
}

func (l Limits) orDefault() Limits {
	if l.Time == 0 {
		l.Time = 10 * time.Second
	}
	if l.Memory == 0 {
		l.Memory = 2 << 30
	}
	if l.Output == 0 {
		l.Output = 1 << 20
	}
	return l
}

// Confined runs a program with no network, within limits, and returns what it
// printed. The program is started by way of this one, so main has to call
// ServeSandbox first. What confines it is the kernel: no socket can be made by it
// or by anything that it starts, its address space, its CPU time and the files that
// it writes are bounded, and after Time it is killed with everything in its group.
// It runs as the same user and can read and write files as that user can. Errors
// are ErrSandbox, *exec.ExitError and ctx's.
func Confined(ctx context.Context, l Limits, dir string, env []string, program string, args ...string) ([]byte, error) {
	if !served.Load() {
		return nil, fmt.Errorf("%w: ServeSandbox was not called first in main", ErrSandbox)
	}
	if _, ok := socketCall[runtime.GOARCH]; !ok {
		return nil, fmt.Errorf("%w: no filter is written for %s", ErrSandbox, runtime.GOARCH)
	}
	l = l.orDefault()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSandbox, err)
	}
	task, err := json.Marshal(confinement{l, program, args})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.Time)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Dir = dir
	cmd.Env = append(append([]string(nil), env...), sandboxVariable+"="+string(task))
	out := &bounded{most: l.Output}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notConfined {
		return out.text, fmt.Errorf("%w: %s", ErrSandbox, out.text)
	}
	return out.text, err
}

// bounded keeps the first bytes of what is written to it.
type bounded struct {
	most int
	text []byte
}

func (b *bounded) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), b.most-len(b.text))]...)
	return len(p), nil
}

const (
	sandboxVariable = "INTERLOCK_SANDBOX"
	notConfined     = 125 // exit code where the program was not started
)

// confinement is what the process in between is told.
type confinement struct {
	Limits  Limits
	Program string
	Args    []string
}

var served atomic.Bool

// ServeSandbox becomes the confined program where this process was started by
// Confined, and does not return then. It is called first in main.
func ServeSandbox() {
	text, ok := os.LookupEnv(sandboxVariable)
	if !ok {
		served.Store(true)
		return
	}
	os.Unsetenv(sandboxVariable)
	var c confinement
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.become()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(notConfined)
}

// become confines this process and executes the program in its place.
func (c confinement) become() error {
	runtime.LockOSThread()
	seconds := uint64(c.Limits.Time/time.Second) + 1
	for what, most := range map[int]uint64{syscall.RLIMIT_CPU: seconds, syscall.RLIMIT_FSIZE: 64 << 20, syscall.RLIMIT_CORE: 0} {
		if err := syscall.Setrlimit(what, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("a limit: %w", err)
		}
	}
	if err := refuseSockets(); err != nil {
		return err
	}
	argv := append([]string{c.Program}, c.Args...)
	environment := os.Environ()
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: c.Limits.Memory, Max: c.Limits.Memory}); err != nil {
		return fmt.Errorf("a limit on memory: %w", err)
	}
	return fmt.Errorf("%s: %w", c.Program, syscall.Exec(c.Program, argv, environment))
}

// What a filter is made of; see linux/seccomp.h, linux/filter.h and linux/audit.h.
const (
	setNoNewPrivs  = 38 // prctl
	setModeFilter  = 1  // seccomp
	allThreads     = 1
	loadWord       = 0x20
	jumpIfEqual    = 0x15
	jumpIfAtLeast  = 0x35
	answer         = 0x06
	answerAllow    = 0x7fff0000
	answerKill     = 0x80000000
	answerErrno    = 0x00050000
	offsetOfCall   = 0
	offsetOfArch   = 4
	otherInterface = 0x40000000 // calls of x32 begin here
)

// Numbers of system calls, by architecture: how a socket is made, another
// process's taken, or the filter gone around.
var (
	auditArch   = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}
	seccompCall = map[string]uintptr{"amd64": 317, "arm64": 277}
	socketCall  = map[string][]uint32{
		"amd64": {41, 53, 101, 310, 311, 425, 438}, // socket, socketpair, ptrace, process_vm_readv and writev, io_uring_setup, pidfd_getfd
		"arm64": {198, 199, 117, 270, 271, 425, 438},
	}
)

type instruction struct {
	code    uint16
	yes, no uint8
	with    uint32
}

// refuseSockets has the kernel refuse sockets to this process and whatever comes
// of it, for good.
func refuseSockets() error {
	calls := socketCall[runtime.GOARCH]
	program := []instruction{
		{loadWord, 0, 0, offsetOfArch},
		{jumpIfEqual, 1, 0, auditArch[runtime.GOARCH]},
		{answer, 0, 0, answerKill},
		{loadWord, 0, 0, offsetOfCall},
		{jumpIfAtLeast, uint8(len(calls)) + 1, 0, otherInterface},
	}
	for i, call := range calls {
		program = append(program, instruction{jumpIfEqual, uint8(len(calls) - i), 0, call})
	}
	program = append(program, instruction{answer, 0, 0, answerAllow}, instruction{answer, 0, 0, answerErrno | uint32(syscall.EACCES)})
	filter := struct {
		length uint16
		first  *instruction
	}{uint16(len(program)), &program[0]}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("no_new_privs: %w", errno)
	}
	at, _, errno := syscall.RawSyscall(seccompCall[runtime.GOARCH], setModeFilter, allThreads, uintptr(unsafe.Pointer(&filter)))
	runtime.KeepAlive(program)
	switch {
	case errno != 0:
		return fmt.Errorf("the kernel takes no filter: %w", errno)
	case at != 0:
		return fmt.Errorf("thread %d can't be confined", at)
	}
	return nil
}
