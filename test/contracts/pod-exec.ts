import { expect } from 'chai';
import { randomInt } from 'node:crypto';
import { v7 } from 'uuid';
import {
  InstanceGone,
  NotJoinable,
  OutcomeUnknown,
  type ExecOutcome,
} from '../../src/contracts/sandbox-driver.ts';
import type { PodTarget } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { eventually } from '../support/harness/eventually.ts';
import type { Cluster } from '../../local-cluster/control-plane/cluster.ts';
import type { PodProgram } from '../support/builders/a-pod.ts';
import { PodStreamsUnderTest } from '../support/cluster/pod-streams.ts';
import { rejection } from '../support/harness/rejection.ts';

/**
 * What a command in a Pod does, whoever runs it; `program` is what the Pod runs, in an image with a
 * shell.
 */
export const podExecSuite = (
  title: string,
  controlPlane: () => Cluster,
  program?: PodProgram,
): void => {
  const ofProgram = program ? { program } : {};

  describe(title, function () {
    let under: PodStreamsUnderTest;
    let pod: PodTarget;
    /** Nobody else's: processes of other suites are seen, too. */
    const [timed, left, calledOff, cut, hung] = Array.from(
      { length: 5 },
      () => `sleep ${randomInt(1_000_000, 100_000_000)}`,
    ) as [string, string, string, string, string];

    before(async () => {
      under = await PodStreamsUnderTest.start(controlPlane(), ofProgram);
      pod = await under.pod('main');
    });
    after(() => under.close());

    it('returns the exit code, 128 + n after signal n, and 126 and 127 like a shell', async () => {
      expect((await under.outcome(pod, ['true'])).exitCode).to.equal(0);
      expect((await under.outcome(pod, ['sh', '-c', 'exit 7'])).exitCode).to.equal(7);
      expect((await under.outcome(pod, ['sh', '-c', 'kill -9 $$'])).exitCode).to.equal(137);
      expect((await under.outcome(pod, ['/etc/passwd'])).exitCode).to.equal(126);
      expect((await under.outcome(pod, ['no-such-command'])).exitCode).to.equal(127);
    });

    it('separates standard output and standard error, and adds nothing to them', async () => {
      const outcome = await under.outcome(pod, ['sh', '-c', 'echo out; echo err >&2; kill -9 $$']);
      expect([String(outcome.stdout), String(outcome.stderr)]).to.deep.equal(['out\n', 'err\n']);
    });

    it('passes arguments unchanged', async () => {
      const argv = ['a b', 'two\nlines\n', '', '-n', '$HOME', "'", 'é\u0001\u0081', ' lead '];
      expect(await under.outcome(pod, ['printf', '%s|', ...argv])).to.deep.include({
        stdout: Buffer.from(argv.map((text) => `${text}|`).join('')),
      });
    });

    it('sets environment and working folder', async () => {
      expect(
        await under.sh(pod, 'pwd; printf "%s|" "$A" "$B"', {
          cwd: '/usr',
          env: { A: 'l1\nl2 ', B: '' },
        }),
      ).to.equal('/usr\nl1\nl2 ||');
      const seen = String(
        (await under.outcome(pod, ['env'], { env: { IFS: '0 12', PS1: '$(x)' } })).stdout,
      ).split('\n');
      expect(seen).to.include.members(['IFS=0 12', 'PS1=$(x)']);
    });

    it('reports a missing working folder', async () => {
      const outcome = await under.outcome(pod, ['true'], { cwd: '/no/such' });
      expect(outcome.exitCode).to.equal(125);
      expect(String(outcome.stderr)).to.include('/no/such');
    });

    it('maps the working folder /home/user to the home', async () => {
      const home = await under.sh(pod, 'cd "$HOME" && pwd -P');
      expect(await under.sh(pod, 'pwd -P', { cwd: '/home/user' })).to.equal(home);
    });

    it('passes a large input and a large output unchanged', async () => {
      const stdin = 'a line of input\n'.repeat(50_000);
      expect(
        (await under.outcome(pod, ['cat'], { stdin })).stdout.equals(Buffer.from(stdin)),
      ).to.equal(true);
    });

    it('has an empty input by default', async () => {
      expect((await under.outcome(pod, ['cat'])).stdout).to.have.lengthOf(0);
    });

    it('keeps outputLimit bytes of each stream and drops the rest without delaying the command', async () => {
      const outcome = await under.outcome(
        pod,
        ['sh', '-c', 'head -c 5000000 /dev/zero; head -c 10 /dev/zero >&2'],
        { outputLimit: 1_000 },
      );
      expect(outcome).to.deep.include({ exitCode: 0, truncated: true });
      expect([outcome.stdout.length, outcome.stderr.length]).to.deep.equal([1_000, 10]);
    });

    it('kills the command and its children at the timeout, and returns 124', async () => {
      const endedAfter = (timeoutMs: number): Promise<ExecOutcome> =>
        under.outcome(
          pod,
          ['sh', '-c', `trap "" HUP TERM; (${timed} & ${timed}) & echo begun; wait`],
          { timeoutMs },
        );
      let outcome: ExecOutcome | undefined;
      // On a busy machine it may not have begun by then.
      for (const timeoutMs of [500, 4_000, 30_000]) {
        outcome = await endedAfter(timeoutMs).catch(() => undefined);
        if (String(outcome?.stdout) === 'begun\n') break;
      }
      expect(outcome).to.deep.include({ exitCode: 124, timedOut: true });
      expect(String(outcome?.stdout)).to.equal('begun\n');
      await eventually(async () => !(await under.runs(pod, timed)), 'both are gone');
    });

    it('does not wait for background processes that hold the output open', async () => {
      const outcome = await under.outcome(pod, ['sh', '-c', `${left} & echo done`]);
      expect(String(outcome.stdout)).to.equal('done\n');
      expect(await under.runs(pod, left)).to.equal(true);
      await under.sh(
        pod,
        `kill $(cd /proc; for p in [0-9]*; do tr "\\0" " " 2>/dev/null <$p/cmdline | grep -q "^${left}" && echo $p; done)`,
      );
    });

    it('kills the command when the request is cancelled', async () => {
      const controller = new AbortController();
      const running = rejection(under.exec(pod, calledOff.split(' '), {}, controller.signal));
      await eventually(() => under.runs(pod, calledOff), 'it runs');
      controller.abort(new Error('called off'));
      expect((await running).message).to.equal('called off');
      await eventually(async () => !(await under.runs(pod, calledOff)), 'it is gone');
    });

    it('rejects with InstanceGone if the Pod is gone or was replaced', async () => {
      expect(await rejection(under.exec({ ...pod, name: v7() }, ['true']))).to.be.instanceOf(
        InstanceGone,
      );
      expect(await rejection(under.exec({ ...pod, uid: v7() }, ['true']))).to.be.instanceOf(
        InstanceGone,
      );
    });

    it('rejects with NotJoinable if nothing can run: no such container, no API server', async () => {
      expect(await rejection(under.exec(pod, ['true'], { container: 'other' }))).to.be.instanceOf(
        NotJoinable,
      );
      under.proxy.state = 'cut-answers';
      expect(await rejection(under.exec(pod, ['true']))).to.be.instanceOf(NotJoinable);
      under.proxy.state = 'pass';
    });

    it('rejects with OutcomeUnknown when the connection breaks, and kills the command', async () => {
      const running = rejection(under.exec(pod, ['sh', '-c', `${cut}; echo done`]));
      await eventually(() => under.runs(pod, cut), 'it runs');
      under.proxy.cut();
      expect(await running).to.be.instanceOf(OutcomeUnknown);
      await eventually(async () => !(await under.runs(pod, cut)), 'it is gone');
    });

    it('detects a silently hanging connection', async () => {
      const pinging = await PodStreamsUnderTest.start(controlPlane(), { pingEveryMs: 1_500 });
      const running = rejection(pinging.exec(pod, hung.split(' ')));
      await eventually(() => under.runs(pod, hung), 'it runs');
      pinging.proxy.state = 'hold';
      expect(await running)
        .to.be.instanceOf(OutcomeUnknown)
        .with.property('message')
        .that.includes('dead');
      await pinging.close();
      await eventually(async () => !(await under.runs(pod, hung)), 'it is gone');
    });

    it('refuses a NUL', async () => {
      expect((await rejection(under.exec(pod, ['echo', 'a\0b']))).message).to.include('NUL');
    });

    it('runs commands in parallel', async () => {
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, i) => under.sh(pod, `echo ${i}; sleep 0.1; echo ${i}`)),
      );
      expect(outcomes).to.deep.equal(Array.from({ length: 20 }, (_, i) => `${i}\n${i}\n`));
    });
  });
};
