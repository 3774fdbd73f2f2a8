import { agentProgram, type Agents } from '../../../src/k8s/sandboxes/pods/agent-programs.ts';

export const testAgents: Agents = {
  own: 'amd64',
  programs: new Map([['amd64', agentProgram(Buffer.from('an agent'))]]),
};
