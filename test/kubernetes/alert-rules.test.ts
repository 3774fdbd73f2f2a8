import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { skipBecause } from '../support/harness/skip-because.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/prometheus', import.meta.url));
const BUILDER = fileURLToPath(new URL('../../script/control-plane', import.meta.url));

/** By the rule tool of Prometheus, which script/test kubernetes builds. */
describe('the alert rules', function () {
  let promtool: string;

  before(function () {
    try {
      const folders = execFileSync(BUILDER, ['--find', 'promtool'], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'pipe'],
      })
        .trim()
        .split(delimiter);
      promtool =
        folders.map((folder) => join(folder, 'promtool')).find((path) => existsSync(path)) ?? '';
    } catch (error) {
      if (process.env['TEST_KUBECONFIG'] === undefined) throw error;
      skipBecause(this, 'there is no promtool, and with TEST_KUBECONFIG none is built');
    }
  });

  it('are valid for Prometheus', () => {
    expect(
      execFileSync(promtool, ['check', 'rules', '--lint-fatal', join(FOLDER, 'alerts.yaml')], {
        encoding: 'utf8',
      }),
    ).to.match(/SUCCESS: \d+ rules found/);
  });

  it('fire and clear as they should, and stay quiet otherwise', () => {
    expect(
      execFileSync(promtool, ['test', 'rules', join(FOLDER, 'alerts.test.yaml')], {
        encoding: 'utf8',
      }),
    ).to.contain('SUCCESS');
  });
});
