import { expect } from 'chai';
import { closeSync, openSync } from 'node:fs';
import type { LogEventCode } from '../../src/contracts/log-events.ts';
import type { LogLevel } from '../../src/contracts/log.ts';
import { createLog, lineOutput, type LineOutput } from '../../src/daemon/process/log.ts';
import { logText } from '../../src/daemon/process/log.ts';

const KEY = 'spk_0123456789abcdef_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

describe('the log', () => {
  const logged = (
    write: (log: ReturnType<typeof createLog>) => void,
    level: LogLevel = 'info',
  ): string[] => {
    const lines: string[] = [];
    write(
      createLog(
        level,
        {},
        {
          write: (line) => {
            lines.push(line);
          },
        },
      ),
    );
    return lines;
  };

  it('writes one JSON line with level, time, fields and event', () => {
    const [line = ''] = logged((log) => {
      log.info({ entity: 'sb-1', from: 'idle', to: 'running' }, 'lease-gained');
    });

    const { time, ...rest } = JSON.parse(line) as Record<string, unknown>;
    expect(rest).to.deep.equal({
      level: 'info',
      entity: 'sb-1',
      from: 'idle',
      to: 'running',
      eventCode: 'lease-gained',
      msg: 'this replica holds the lease of a shard',
    });
    expect(time).to.match(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(line.trimEnd()).to.not.include('\n');
  });

  it('shows the code of an event that a spawner of another version sent', () => {
    const unknown: string = 'of-another-version';
    const [line = ''] = logged((log) => {
      log.info({}, unknown as LogEventCode);
    });

    expect(JSON.parse(line)).to.include({ eventCode: unknown, msg: unknown });
  });

  it('omits lines below its level', () => {
    const lines = logged((log) => {
      log.info({}, 'client-gone');
      log.warn({}, 'link-cut');
      log.error({}, 'daemon-failed');
    }, 'warn');

    expect(
      lines.map((line) => (JSON.parse(line) as { eventCode: string }).eventCode),
    ).to.deep.equal(['link-cut', 'daemon-failed']);
  });

  it('shows an error with its message and its cause', () => {
    const [line] = logged((log) => {
      log.error({ error: new Error('outer', { cause: new Error('inner') }) }, 'request-failed');
    });

    expect(line).to.include('outer').and.include('inner');
  });

  it('never shows a secret, by field or by shape', () => {
    const lines = logged((log) => {
      log.warn(
        {
          apiKey: 'hidden',
          body: { token: 'hidden', nested: { secret: 'hidden' } },
          headers: { 'service-api-key': 'hidden', authorization: 'hidden' },
        },
        'client-gone',
      );
      log.warn({ token: 'hidden', 'service-api-key': 'hidden', status: 404 }, 'link-cut');
      log.warn({ url: `/x?key=${KEY}`, error: new Error(`bad key ${KEY}`) }, 'link-refused');
    });

    expect(lines.join('')).to.not.include('hidden');
    expect(lines[2]).to.not.include('abcdefghijklmnop');
    expect(lines[2]).to.include('spk_0123456789abcdef_[secret]');
  });

  it('changes its level at runtime', () => {
    const lines = logged((log) => {
      log.debug({}, 'client-gone');
      log.level = 'debug';
      log.debug({}, 'link-cut');
      log.level = 'error';
      log.warn({}, 'link-refused');
    });

    expect(
      lines.map((line) => (JSON.parse(line) as { eventCode: string }).eventCode),
    ).to.deep.equal(['link-cut']);
  });

  it('is plain text on a terminal', () => {
    const plain = (line: string): string => logText(line).replaceAll(/\u001b\[\d+m/g, '');
    const [line = '', failed = ''] = logged((log) => {
      log.info(
        { entity: 'pool', from: 'Pending', to: 'Ready', said: 'one\u001b[2J', counts: { idle: 2 } },
        'pool-moved',
      );
      log.error({ error: new Error('no luck') }, 'request-failed');
    });

    expect(plain(line)).to.match(
      /^\d\d:\d\d:\d\d\.\d{3} info  pool moved entity=pool from=Pending to=Ready said=one\?\[2J counts=\{"idle":2\}\n$/,
    );
    expect(plain(failed)).to.match(/error request failed error=Error: no luck\n +at /);
    expect(logText('no JSON\n')).to.equal('no JSON\n');
  });
});

describe('log lines on a full disk', () => {
  it('are lost, without an effect on the process or its end', async () => {
    const full = openSync('/dev/full', 'w');
    let output: LineOutput | undefined;
    await new Promise<void>((lacking) => {
      output = lineOutput(full, lacking);
      output.write('a line\n');
    });
    expect(output?.flushSync()).to.equal(undefined);
    closeSync(full);
  });
});
