import { expect } from 'chai';
import { onACliDaemon } from './cli-support.ts';

const WHOLE: ReadonlySet<string> = new Set(['instance-types', 'volumes']);

describe('the lists of a single cluster', () => {
  const { sandpool } = onACliDaemon();

  for (const command of ['sandboxes', 'pools', 'templates', 'instance-types', 'volumes'])
    it(`are available with --cluster in ${command}`, async () => {
      const words = WHOLE.has(command) ? [command] : [command, 'list'];
      const list = (cluster: string) => sandpool(...words, '--cluster', cluster);
      expect(await list('local')).to.include({ code: 0, stderr: '' });
      expect((await list('west')).stderr).to.include('cluster not found');
      expect((await list('W')).stderr).to.include('clusterID');
    });
});
