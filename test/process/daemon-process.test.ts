import { expect } from 'chai';
import { EventEmitter, once } from 'node:events';
import { silentLog } from '../../src/contracts/log.ts';
import {
  type ProcessDeps,
  type RunnableDaemon,
  runDaemon,
  START_GRACE_MS,
  STOP_DEADLINE_MS,
} from '../../src/daemon/process/run-daemon.ts';
import { rejection } from '../support/harness/rejection.ts';

describe("the daemon's process", () => {
  let happened: string[];
  let process: EventEmitter;
  let deadlines: Map<number, () => void>;
  let fail: (error: Error) => void;
  let daemon: RunnableDaemon & { stopping: PromiseWithResolvers };
  let deps: ProcessDeps;

  beforeEach(() => {
    happened = [];
    process = new EventEmitter();
    deadlines = new Map();
    const stopping = withResolvers();
    daemon = {
      stopping,
      failed: new Promise((resolve) => {
        fail = resolve;
      }),
      start: async () => ({ address: 'http://127.0.0.1:1', firstStart: true }),
      stop: async () => {
        happened.push('stop');
        process.emit('stop called');
        await stopping.promise;
        return { sandboxesLeft: 3 };
      },
    };
    const note =
      (level: string) =>
      (_: unknown, event: string): void => {
        happened.push(`${level} ${event}`);
      };
    deps = {
      log: { ...silentLog, debug: note('debug'), warn: note('warn'), error: note('error') },
      signals: process,
      exit: (code) => {
        happened.push(`exit ${code}`);
      },
      after: (ms, due) => {
        deadlines.set(ms, due);
        return () => {
          deadlines.delete(ms);
        };
      },
      shutdownDelayMs: 0,
      onReady: ({ address }) => {
        happened.push(`ready ${address}`);
        process.emit('ready');
      },
      onStopped: ({ sandboxesLeft }) => {
        happened.push(`left ${sandboxesLeft}`);
      },
    };
  });

  const started = async (): Promise<{ readonly code: Promise<number> }> => {
    const ready = once(process, 'ready');
    const code = runDaemon(daemon, deps);
    await ready;
    return { code };
  };

  for (const signal of ['SIGINT', 'SIGTERM']) {
    it(`stops in order at the first ${signal}, reports what is left, and exits with 0`, async () => {
      const { code } = await started();
      daemon.stopping.resolve();

      process.emit(signal, signal);

      expect(await code).to.equal(0);
      expect(happened).to.deep.equal(['ready http://127.0.0.1:1', 'stop', 'left 3']);
      expect(deadlines.size + process.listenerCount(signal)).to.equal(0);
    });
  }

  it('ends at once at the second signal', async () => {
    const { code } = await started();
    const stopCalled = once(process, 'stop called');
    process.emit('SIGINT', 'SIGINT');
    await stopCalled;

    process.emit('SIGTERM', 'SIGTERM');

    expect(happened).to.include('exit 143').and.not.include('left 3');
    daemon.stopping.resolve();
    await code;
  });

  it('ends at once when the orderly stop takes longer than its deadline', async () => {
    const { code } = await started();
    const stopCalled = once(process, 'stop called');
    process.emit('SIGTERM', 'SIGTERM');
    await stopCalled;

    deadlines.get(STOP_DEADLINE_MS)?.();

    expect(happened).to.include.members(['error stop-took-too-long', 'exit 1']);
    daemon.stopping.resolve();
    await code;
  });

  it('stops and exits with 1 when the daemon reports that it cannot continue', async () => {
    const { code } = await started();
    daemon.stopping.resolve();

    fail(new Error('a commit failed'));

    expect(await code).to.equal(1);
    expect(happened).to.include.members(['error daemon-failed', 'stop', 'left 3']);
  });

  it('stops what a failed start has opened, and passes on the cause', async () => {
    daemon.start = () => Promise.reject(new Error('the port is taken'));
    daemon.stopping.resolve();

    expect((await rejection(runDaemon(daemon, deps))).message).to.equal('the port is taken');
    expect(happened).to.deep.equal(['stop']);
    expect(deadlines.size + process.listenerCount('SIGINT')).to.equal(0);
  });

  it('stops a daemon that was cancelled during its start', async () => {
    const starting = withResolvers();
    daemon.start = async () => {
      await starting.promise;
      return { address: 'http://127.0.0.1:1', firstStart: false };
    };
    daemon.stopping.resolve();
    const code = runDaemon(daemon, deps);

    process.emit('SIGINT', 'SIGINT');
    starting.resolve();

    expect(await code).to.equal(0);
    expect(happened).to.include('left 3');
  });

  it('cancels a start that waits for others, some time after the signal', async () => {
    daemon.start = () => new Promise(() => undefined);
    daemon.stopping.resolve();
    const code = runDaemon(daemon, deps);

    process.emit('SIGTERM', 'SIGTERM');
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
    deadlines.get(START_GRACE_MS)?.();

    expect(await code).to.equal(0);
    expect(happened).to.deep.equal(['stop', 'left 3']);
    expect(deadlines.size).to.equal(0);
  });

  it('does not start a daemon that was cancelled while it was composed', async () => {
    daemon.start = () => Promise.reject(new Error('started all the same'));
    daemon.stopping.resolve();

    expect(await runDaemon(daemon, { ...deps, signalled: () => 'SIGTERM' })).to.equal(0);
    expect(happened).to.deep.equal(['stop', 'left 3']);
  });
});

interface PromiseWithResolvers {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

const withResolvers = (): PromiseWithResolvers => {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
};
