; Runs the tasks of parallel loops on several threads; takes the place of TVM's own pool, which waits
; for every worker even if it never got a core: with one other busy process, most calls then take as
; long as the system's time slice (4 to 8 ms). Here whoever comes first takes a task, so that the
; caller does alone what no worker has begun.
;
; A task is claimed by writing the job's number where the last job's number was: nothing has to be
; reset, and a worker that comes late finds every task taken. Thread i looks at task i first, so that
; the same core gets the same part of the data from kernel to kernel.
;
; runtime/pool.py allocates the state, starts the workers, and knows its layout. $pause, $futex,
; $gettid and $target are filled in by parallel.py.

%Line = type { i32, i32, [56 x i8] }                     ; a cache line of its own
%Word = type { i64, [56 x i8] }
%Job = type { ptr, ptr, i32, i32, i32, i32, [32 x i8] }  ; body, data, held, failed, threads, spins
%State = type { %Word, %Line, %Line, %Job, [0 x %Line] } ; ticket, sleeping, done, job, claims (and tids)
%Environment = type { ptr, i32 }                         ; what TVM's loops are told: tasks in all
%Value = type { i32, i32, i64 }                          ; an argument or result of a TVM function

@state = internal global ptr null
@functions = internal constant [2 x ptr] [ptr @launch, ptr @worker]

declare i64 @syscall(i64, ...)
declare i32 @sched_yield()

; Begins to use a state; returns the address of its functions.
define weak i32 @__tvm_ffi_tvmgraph_thread_pool(ptr %self, ptr %arguments, i32 %count, ptr %result) {
  %place = getelementptr %Value, ptr %arguments, i32 0, i32 2
  %address = load i64, ptr %place
  %new = inttoptr i64 %address to ptr
  store ptr %new, ptr @state
  %functions = ptrtoint ptr @functions to i64
  store %Value { i32 1, i32 0, i64 0 }, ptr %result
  %value = getelementptr %Value, ptr %result, i32 0, i32 2
  store i64 %functions, ptr %value
  ret i32 0
}

; Does the tasks of a job that nobody has claimed, from `first` on and around.
define internal void @take_part(ptr %state, i64 %ticket, i32 %first) {
entry:
  %environment = alloca %Environment
  %high = lshr i64 %ticket, 32
  %job = trunc i64 %high to i32
  %tasks = trunc i64 %ticket to i32
  store ptr null, ptr %environment
  %told = getelementptr %Environment, ptr %environment, i32 0, i32 1
  store i32 %tasks, ptr %told
  %done = getelementptr %State, ptr %state, i32 0, i32 2
  %body.place = getelementptr %State, ptr %state, i32 0, i32 3, i32 0
  %data.place = getelementptr %State, ptr %state, i32 0, i32 3, i32 1
  %failed = getelementptr %State, ptr %state, i32 0, i32 3, i32 3
  br label %next

next:
  %step = phi i32 [ 0, %entry ], [ %step.next, %skip ]
  %more = icmp ult i32 %step, %tasks
  br i1 %more, label %look, label %end

look:
  %sum = add i32 %first, %step
  %task = urem i32 %sum, %tasks
  %claim = getelementptr %State, ptr %state, i32 0, i32 4, i32 %task, i32 0
  %before = load atomic i32, ptr %claim monotonic, align 4
  %age = sub i32 %job, %before                           ; numbers wrap around
  %free = icmp sgt i32 %age, 0
  br i1 %free, label %try, label %skip

try:
  %pair = cmpxchg ptr %claim, i32 %before, i32 %job acq_rel monotonic
  %won = extractvalue { i32, i1 } %pair, 1
  br i1 %won, label %do, label %skip

do:                                                      ; the job cannot end before its task
  %body = load ptr, ptr %body.place
  %data = load ptr, ptr %data.place
  %status = call i32 %body(i32 %task, ptr %environment, ptr %data)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %count, label %fail

fail:
  store atomic i32 1, ptr %failed monotonic, align 4
  br label %count

count:
  %ended = atomicrmw add ptr %done, i32 1 release
  br label %skip

skip:
  %step.next = add i32 %step, 1
  br label %next

end:
  ret void
}

; One task that is the whole loop.
define internal i32 @alone(ptr %body, ptr %data) {
  %environment = alloca %Environment
  store %Environment { ptr null, i32 1 }, ptr %environment
  %status = call i32 %body(i32 0, ptr %environment, ptr %data)
  ret i32 %status
}

; What generated code calls; `wanted` is 0 there, for as many tasks as there are threads.
define internal i32 @launch(ptr %body, ptr %data, i32 %wanted) {
entry:
  %state = load ptr, ptr @state
  %threads.place = getelementptr %State, ptr %state, i32 0, i32 3, i32 4
  %threads = load atomic i32, ptr %threads.place monotonic, align 4
  %several = icmp sgt i32 %threads, 1
  br i1 %several, label %hold, label %serial

hold:                                                    ; one job at a time: others do theirs alone
  %held = getelementptr %State, ptr %state, i32 0, i32 3, i32 2
  %pair = cmpxchg ptr %held, i32 0, i32 1 acquire monotonic
  %won = extractvalue { i32, i1 } %pair, 1
  br i1 %won, label %publish, label %serial

publish:
  %body.place = getelementptr %State, ptr %state, i32 0, i32 3, i32 0
  %data.place = getelementptr %State, ptr %state, i32 0, i32 3, i32 1
  %failed = getelementptr %State, ptr %state, i32 0, i32 3, i32 3
  %done = getelementptr %State, ptr %state, i32 0, i32 2
  store ptr %body, ptr %body.place
  store ptr %data, ptr %data.place
  store atomic i32 0, ptr %failed monotonic, align 4
  store atomic i32 0, ptr %done monotonic, align 4
  %last = load atomic i64, ptr %state monotonic, align 8
  %last.number = and i64 %last, -4294967296
  %number = add i64 %last.number, 4294967296
  %tasks = zext i32 %threads to i64
  %ticket = or i64 %number, %tasks
  store atomic i64 %ticket, ptr %state seq_cst, align 8
  %sleeping.place = getelementptr %State, ptr %state, i32 0, i32 1
  %sleeping = load atomic i32, ptr %sleeping.place seq_cst, align 4
  %awake = icmp eq i32 %sleeping, 0
  br i1 %awake, label %work, label %wake

wake:                                                    ; FUTEX_WAKE_PRIVATE
  %word = getelementptr i8, ptr %state, i64 4
  %woken = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i64 129, i64 2147483647, ptr null, ptr null, i64 0)
  br label %work

work:
  call void @take_part(ptr %state, i64 %ticket, i32 0)
  br label %wait

wait:                                                    ; for tasks that others have begun
  %turns = phi i32 [ 0, %work ], [ %turns.next, %again ], [ %turns.next, %yield ]
  %ended = load atomic i32, ptr %done acquire, align 4
  %all = icmp eq i32 %ended, %threads
  br i1 %all, label %end, label %pause

pause:
  call void asm sideeffect "$pause", ""()
  %turns.next = add nuw i32 %turns, 1
  %patient = icmp slt i32 %turns, 2000
  br i1 %patient, label %again, label %yield

again:
  br label %wait

yield:                                                   ; they may need this core
  %yielded = call i32 @sched_yield()
  br label %wait

end:
  %bad = load atomic i32, ptr %failed monotonic, align 4
  store atomic i32 0, ptr %held release, align 4
  %good = icmp eq i32 %bad, 0
  br i1 %good, label %return, label %serial

return:
  ret i32 0

serial:                                                  ; after a failure: for the thread's error
  %status = call i32 @alone(ptr %body, ptr %data)
  ret i32 %status
}

; The life of a worker; its argument is its number.
define internal ptr @worker(ptr %argument) {
entry:
  %index.wide = ptrtoint ptr %argument to i64
  %index = trunc i64 %index.wide to i32
  %state = load ptr, ptr @state
  %word = getelementptr i8, ptr %state, i64 4
  %sleeping = getelementptr %State, ptr %state, i32 0, i32 1
  %spins.place = getelementptr %State, ptr %state, i32 0, i32 3, i32 5
  %spins = load i32, ptr %spins.place
  %id = call i64 (i64, ...) @syscall(i64 $gettid)
  %tid = trunc i64 %id to i32
  %tid.place = getelementptr %State, ptr %state, i32 0, i32 4, i32 %index, i32 1
  store atomic i32 %tid, ptr %tid.place release, align 4
  br label %look

look:
  %seen = phi i64 [ 0, %entry ], [ %ticket, %work ], [ %seen, %pause ], [ %seen, %sleep ]
  %turns = phi i32 [ 0, %entry ], [ 0, %work ], [ %turns.next, %pause ], [ 0, %sleep ]
  %ticket = load atomic i64, ptr %state acquire, align 8
  %same = icmp eq i64 %ticket, %seen
  br i1 %same, label %idle, label %work

work:
  call void @take_part(ptr %state, i64 %ticket, i32 %index)
  br label %look

idle:
  %turns.next = add i32 %turns, 1
  %spin = icmp slt i32 %turns, %spins
  br i1 %spin, label %pause, label %sleep

pause:
  call void asm sideeffect "$pause", ""()
  br label %look

sleep:                                                   ; FUTEX_WAIT_PRIVATE, unless there is a job
  %seen.high = lshr i64 %seen, 32
  %more = atomicrmw add ptr %sleeping, i32 1 seq_cst
  %slept = call i64 (i64, ...) @syscall(i64 $futex, ptr %word, i64 128, i64 %seen.high, ptr null, ptr null, i64 0)
  %less = atomicrmw sub ptr %sleeping, i32 1 seq_cst
  br label %look
}

!llvm.module.flags = !{!0}
!0 = !{i32 4, !"tvm_target", !"$target"}
