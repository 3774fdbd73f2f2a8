import type { Command } from 'commander';
import type { Actions } from '../../common/action.ts';
import { group } from '../../common/leaf.ts';
import { listLeaf } from './audit-list.ts';
import { verifyLeaf } from './audit-verify.ts';

export const auditGroup = ({ action }: Actions): Command =>
  group('audit', 'Shows the audit, and verifies that it is complete', [])
    .addCommand(listLeaf(action), { isDefault: true })
    .addCommand(verifyLeaf(action));
